import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Parameters of a running daemon")
struct ParameterTests {
    private static let echo = """
        parameters:
          word: {default: hello, pattern: '[\\w -]*'}
          api-token: {default: open-sesame-1}
        source: {exec: [/bin/echo, "{word}", "{print $1}"]}
        refresh: {on: []}
        cache: {file: word.txt}

        """

    private func set(_ client: ControlClient, _ values: [String: String]) throws -> ControlMessage.ParametersSet {
        try client.setParameters(
            .init(name: "echo", settings: values.map { ParameterSetting($0.key, $0.value) }))
    }

    @Test("setting a parameter runs the pipeline with the cause `parameter`; status and journal show no secret value")
    func sets() async throws {
        let home = try Home()
        try home.configure("echo", Self.echo)
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            let reply = try set(client, ["word": "good bye", "api-token": "open-sesame-2"])
            #expect(reply.changed == ["api-token", "word"])
            #expect(eventually { home.copy("word.txt") == "good bye {print $1}\n" })
            let status = try client.status("echo")
            #expect(status.lastCauses.map(\.signal) == ["parameter"])
            #expect(status.lastCauses.first?.detail == "api-token, word")
            #expect(
                status.parameters == [
                    ParameterStatus(
                        name: "word", value: "good bye", default: "hello", isSet: true, pattern: "[\\w -]*"),
                    ParameterStatus(name: "api-token", isSet: true),
                ])
            #expect(try client.signals().first { $0.name == "parameter" }?.fired == 1)
            #expect(throws: ControlClient.Failure.refused(.cannotFire(name: "parameter"))) {
                try client.fireSignal("parameter")
            }
            #expect(try set(client, ["word": "good bye"]).changed == [])
            let refusal = ControlError.parametersRefused(
                name: "echo",
                refusals: [.init(parameter: "wrod", reason: "is unknown; did you mean 'word'?")])
            #expect(throws: ControlClient.Failure.refused(refusal)) { try set(client, ["wrod": "x"]) }
            #expect(
                try client.setParameters(.init(name: "echo", settings: [], othersToDefault: true)).changed.count == 2)
            #expect(eventually { home.copy("word.txt") == "hello {print $1}\n" })
        }
        let lines = log.lines.filter { $0.message == "parameters were set: {parameters}" }
        #expect(lines.map { $0.metadata["parameters"] } == ["api-token, word", "api-token, word"])
        #expect(lines.allSatisfy { $0.metadata["requested-by"] == "user \(geteuid()), process \(getpid())" })
        #expect(log.lines.allSatisfy { !"\($0)".contains("open-sesame") })
    }

    @Test("values survive a restart; a value that is not valid any more is dropped by a reload or a start, and logged")
    func outlasts() async throws {
        let home = try Home()
        try home.configure("echo", Self.echo)
        _ = try await withDaemon(home) { client in
            _ = try set(client, ["word": "kept"])
            #expect(eventually { home.copy("word.txt") == "kept {print $1}\n" })
        }
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(try client.status("echo").parameters?.first?.value == "kept")
            _ = try client.refresh("echo")
            #expect(home.copy("word.txt") == "kept {print $1}\n")
            try home.configure("echo", Self.echo.replacing("'[\\w -]*'", with: "'h.*'"))
            _ = try client.reload(configurationOnly: true)
            #expect(
                eventually {
                    log.lines.contains {
                        $0.metadata["message-id"] == JournalMessage.parametersDropped.rawValue
                            && $0.metadata["parameters"] == "word"
                    }
                })
            #expect(try client.status("echo").parameters?.first?.value == "hello")
        }
        try home.configure("echo", Self.echo)
        _ = try await withDaemon(home) { client in
            let parameters = try client.status("echo").parameters
            #expect(parameters?.first?.isSet == false)
        }
    }
}
