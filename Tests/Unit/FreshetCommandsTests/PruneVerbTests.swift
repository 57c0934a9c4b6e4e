import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct PruneVerbTests {

    private func service(_ count: Int = 2) -> ScriptedService {
        let service = ScriptedService(["jwks"])
        let all = [
            UnownedPipeline(
                name: "old", file: "old.json", generations: 2, bytes: 58, committedAt: Transcript.now - 120_000_000),
            UnownedPipeline(name: "older", generations: 0, bytes: 0),
        ]
        service.change { $0.unowned = .success(Array(all.prefix(count))) }
        return service
    }

    /// Runs prune on a terminal with this answer.
    private func prune(
        _ line: String, _ service: ScriptedService, answer: String?, status: CommandStatus
    ) async throws -> Transcript {
        let transcript = Transcript()
        try await withControlServer(service) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path])
            context.answer = { answer }
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == status)
        }
        return transcript
    }

    private func removals(_ service: ScriptedService) -> [String] {
        service.asked.map { $0.split(separator: " ").prefix { $0 != "for" }.joined(separator: " ") }
    }

    @Test("prune lists pipelines, asks, and removes the listed pipelines", arguments: ["y", "Y", "yes"])
    func confirmed(answer: String) async throws {
        let service = service()
        let transcript = try await prune("prune", service, answer: answer, status: .success)
        #expect(transcript.output.contains("old      old.json"))
        #expect(transcript.output.hasSuffix("\n\n2 pipelines, 2 generations, 58 B.\n"))
        #expect(
            transcript.printError == "Remove all of this? [y/N] removed: 2 pipelines, 2 generations, 58 B\n")
        #expect(removals(service) == ["prune old older"])
    }

    @Test("prune removes nothing without a yes", arguments: ["n", "", "yess", nil])
    func declined(answer: String?) async throws {
        let service = service()
        let transcript = try await prune("prune", service, answer: answer, status: .failure)
        #expect(transcript.printError == "Remove all of this? [y/N] freshetctl: nothing was removed\n")
        #expect(service.asked == [])
    }

    @Test("prune needs --yes without a terminal")
    func noTerminal() async throws {
        let service = service()
        let transcript = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("prune", transcript, socket: path) == .failure)
            #expect(
                transcript.printError
                    == "freshetctl: nothing was removed: standard input is not a terminal; confirm with --yes\n"
            )
            #expect(service.asked == [])
            #expect(freshetctl("prune --yes --quiet", Transcript(), socket: path) == .success)
        }
        #expect(removals(service) == ["prune old older"])
    }

    @Test("prune --dry-run only lists")
    func dryRun() async throws {
        let service = service()
        let transcript = try await prune("prune -n", service, answer: "y", status: .success)
        #expect(transcript.output.contains("old      old.json") && transcript.printError == "")
        #expect(service.asked == [])
        try await expect("prune --dry-run --yes", of: service, status: .usage, printError: usage)
    }

    private var usage: String {
        let transcript = Transcript()
        _ = freshetctl("prune --dry-run --yes", transcript)
        return transcript.printError
    }

    @Test("prune asks nothing if there is nothing to remove")
    func nothing() async throws {
        try await expect(
            "prune", of: service(0), printError: "Nothing to prune.\n", asked: [])
    }

    @Test("prune --json prints the pipelines that were or would be removed")
    func json() async throws {
        let row =
            #"{"bytes":0,"generations":0,"name":"older"}"#
        let service = ScriptedService([])
        service.change {
            $0.unowned = .success([UnownedPipeline(name: "older", generations: 0, bytes: 0)])
        }
        try await expect("prune --json --dry-run", of: service, output: "{\"pipelines\":[\(row)]}\n", asked: [])
        try await expect("prune --json --yes", of: service, output: "{\"failed\":[],\"pipelines\":[\(row)]}\n")
    }

    @Test("prune removes thousands of pipelines with several calls")
    func many() async throws {
        let service = ScriptedService([])
        let count = 2 * ControlDispatcher.unownedPerReply + 1
        service.change {
            $0.unowned = .success((0..<count).map { UnownedPipeline(name: "p\($0)", generations: 0, bytes: 0) })
        }
        try await expect(
            "prune --yes --quiet --no-legend --json", of: service,
            output: "{\"failed\":[],\"pipelines\":["
                + (0..<count).map { "{\"bytes\":0,\"generations\":0,\"name\":\"p\($0)\"}" }.joined(separator: ",")
                + "]}\n")
        #expect(service.asked.count == 3)
    }

    @Test("prune lists removed and remaining pipelines if one cannot be removed")
    func partly() async throws {
        let service = service()
        service.change { $0.unprunable = ["old": "unlink /x: Input/output error"] }
        let printError = """
            removed: older
            not removed: old: unlink /x: Input/output error
            freshetctl: 1 of 2 pipelines was not removed, or only in part

            """
        let transcript = try await prune("prune --yes", service, answer: nil, status: .failure)
        #expect(transcript.printError == printError)
        try await expect(
            "prune --yes --json", of: service, status: .failure,
            output: #"{"failed":[{"name":"old","reason":"unlink /x: Input/output error"}],"#
                + #""pipelines":[{"bytes":0,"generations":0,"name":"older"}]}"# + "\n",
            printError: "freshetctl: 1 of 2 pipelines was not removed, or only in part\n")
    }

    @Test("prune lists the pipelines removed before a refused call; a refused first call is an ordinary error")
    func rejectedLater() async throws {
        let service = ScriptedService([])
        let count = ControlDispatcher.unownedPerReply + 1
        service.change {
            $0.unowned = .success((0..<count).map { UnownedPipeline(name: "p\($0)", generations: 0, bytes: 0) })
            $0.pruneFailure = (2, .busy("the daemon is stopping"))
        }
        let transcript = try await prune("prune --yes --no-legend", service, answer: nil, status: .failure)
        let lines = transcript.printError.split(separator: "\n")
        #expect(lines.count { $0.hasPrefix("removed: p") } == ControlDispatcher.unownedPerReply)
        #expect(lines.filter { $0.hasPrefix("not removed: ") }.map { $0.prefix(18) } == ["not removed: p64: "])
        #expect(lines.last == "freshetctl: 1 of 65 pipelines was not removed, or only in part")
        service.change { $0.pruneFailure = (3, .failed(name: nil, reason: "nothing is removed")) }
        let refused = try await prune("prune --yes --no-legend", service, answer: nil, status: .failure)
        #expect(refused.printError == "freshetctl: nothing is removed\n")
    }

    @Test("prune needs the permission to change")
    func rights() async throws {
        let transcript = Transcript()
        try await withControlServer(service(), rights: strangerRights) { path in
            #expect(freshetctl("prune --dry-run", transcript, socket: path) == .notPermitted)
        }
    }
}
