import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct ParameterVerbTests: VerbSuite {
    private static let parameters = [
        ParameterStatus(name: "api-key", isSet: true),
        ParameterStatus(name: "language", value: "de", default: "en", isSet: true, choices: ["en", "de"]),
        ParameterStatus(name: "query", value: "", default: "", pattern: "[a-z ]*", quietUSec: 300_000),
        ParameterStatus(name: "region", value: "north", default: "north"),
    ]
    private let caller = "user \(geteuid()), process \(getpid())"

    func service() -> ScriptedService {
        let service = ScriptedService(["homepage", "plain"])
        service.change { script in
            script.pipelines["homepage"]?.parameters = Self.parameters
            script.parameters = .success(.init(changed: ["api-key", "language"], parameters: Self.parameters))
        }
        return service
    }

    @Test(
        "set changes all named parameters in one call and prints the new values, which may contain '=' and begin with '-'"
    )
    func set() async throws {
        try await check(
            "set homepage language=de query=a=b api-key=-x",
            printError: "api-key = (secret), language = de\n",
            asked: ["set homepage language=de query=a=b api-key=-x for \(caller)"])
    }

    @Test("unset resets the named parameters, or all")
    func unset() async throws {
        try await check(
            "unset homepage language language", printError: "api-key = (secret), language = de\n",
            asked: ["set homepage language=default for \(caller)"])
        try await check(
            "unset homepage --quiet", asked: ["set homepage others=default for \(caller)"])
    }

    @Test("equal values change nothing, and the command succeeds")
    func same() async throws {
        let service = service()
        service.change { $0.parameters = .success(.init(changed: [], parameters: Self.parameters)) }
        try await check(
            "set homepage language=de", service, printError: "nothing changed: these are the values already\n",
            asked: ["set homepage language=de for \(caller)"])
    }

    @Test("set without a value shows all parameters, but no secrets")
    func shown() async throws {
        try await check(
            "set homepage",
            output: """
                PARAMETER VALUE    DEFAULT  ALLOWED
                api-key   (secret) (secret) any text
                language  de       en       en, de
                query     ""       ""       [a-z ]*
                region    north    north    any text

                4 parameters of homepage.

                """)
        try await check("set plain", printError: "'plain' has no parameters.\n")
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            #expect(freshetctl("set homepage --json", transcript, socket: path) == .success)
            #expect(freshetctl("status homepage", transcript, socket: path) == .success)
        }
        let json = #"{"parameters":[{"isSet":true,"name":"api-key","quietUSec":0},{"choices":"#
        #expect(transcript.output.hasPrefix(json))
        let line =
            #"      Set: api-key = (secret), language = de, query = "" (the default), region = north (the default)"#
        #expect(transcript.output.contains("\n\(line)\n"))
    }

    @Test("a refusal gives the reason for each value, and says that nothing was set")
    func refused() async throws {
        let service = service()
        service.change { script in
            script.parameters = .failure(
                .parametersRefused(
                    name: "homepage",
                    refusals: [
                        .init(parameter: "language", reason: "has to be one of en, de"),
                        .init(parameter: "quary", reason: "is unknown; did you mean 'query'?"),
                    ]))
        }
        try await check(
            "set homepage language=xx quary=x", service, status: .failure,
            printError: """
                freshetctl: 'language' has to be one of en, de
                'quary' is unknown; did you mean 'query'?
                Nothing was set; 'freshetctl set homepage' shows the parameters.

                """, asked: ["set homepage language=xx quary=x for \(caller)"])
    }

    @Test("a user without permission may show parameters, but not set them")
    func rights() async throws {
        try await check(
            "set homepage language=de", rights: strangerRights, status: .notPermitted,
            printError: "freshetctl: permission denied: be root or a member of group freshet ('adduser NAME "
                + "freshet')\n")
        let transcript = Transcript()
        try await withControlServer(service(), rights: strangerRights) { path in
            #expect(freshetctl("set homepage", transcript, socket: path) == .success)
        }
    }

    @Test(
        "an invalid setting is a usage error, and no call is made",
        arguments: [
            "set", "set homepage language", "set homepage =x", "set homepage language=de language=en", "unset",
        ])
    func usage(line: String) async throws {
        let transcript = Transcript()
        let service = service()
        try await withControlServer(service) { path in
            #expect(freshetctl(line, transcript, socket: path) == .usage)
        }
        #expect(service.asked == [])
    }
}
