import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Pruning", .serialized, .hangLimit)
struct PruneTests {
    private func makeHome() throws -> Home {
        let home = try Home()
        try home.write("one", to: "source.txt")
        for name in ["a", "b"] { try configure(name, home) }
        return home
    }

    private func configure(_ name: String, _ home: Home) throws {
        try home.configure(
            name, "source: {file: \(home.path)/source.txt}\nrefresh: {on: []}\ncache: {file: \(name).txt}\n")
    }

    private func unowned(_ client: ControlClient) throws -> [String] {
        var names: [String] = []
        try client.unowned { names += $0.map(\.name) }
        return names
    }

    @Test("prune removes pipelines that were configured, but no active, new or invalid pipeline")
    func living() async throws {
        let home = try makeHome()
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            for name in ["a", "b"] { #expect(try client.refresh(name).outcome == .changed) }
            #expect(try unowned(client) == [])
            let file = home.path + "/etc/pipelines/a.yaml"
            #expect(unlink(file) == 0)
            // The pipeline is still active.
            #expect(try unowned(client) == [])
            #expect(try client.prune(["a"]) == ControlMessage.Pruned())
            _ = try client.reload()
            let shown = try unowned(client)
            #expect(shown == ["a"])
            try home.configure("a", "source: {fil: x}\n")
            #expect(try unowned(client) == [])
            #expect(try client.prune(["a"]) == ControlMessage.Pruned())
            #expect(home.copy("a.txt") == "one")
            #expect(unlink(file) == 0)
            let pruned = try client.prune(["a", "b", "none"]).pipelines
            #expect(pruned.map(\.name) == ["a"] && pruned.map(\.bytes) == [3] && pruned.map(\.file) == ["a.txt"])
            #expect(home.copy("a.txt") == nil && home.copy("b.txt") == "one")
            // If the pipeline is added again, it is new.
            try configure("a", home)
            _ = try client.reload()
            #expect(try client.refresh("a").outcome == .changed)
            #expect(try client.status("a").generation?.number == 1)
        }
        let lines = log.lines.filter { $0.metadata["message-id"] == JournalMessage.pruned.rawValue }
        #expect(lines.map { $0.metadata["pipeline"] } == ["a"])
    }

    @Test("a pipeline that cannot be removed is reported with the reason, and the others are removed")
    func partly() async throws {
        let home = try makeHome()
        _ = try await withDaemon(home) { client in
            for name in ["a", "b"] {
                #expect(try client.refresh(name).outcome == .changed)
                #expect(unlink(home.path + "/etc/pipelines/\(name).yaml") == 0)
            }
            _ = try client.reload()
            // Data is moved to the strays before it is removed, which fails here.
            let cache = home.path + "/cache/below"
            #expect(mkdir(cache + "/generations/a/theirs", 0o755) == 0)
            try home.write("", to: "cache/below/strays")
            let pruned = try client.prune(["a", "b"])
            #expect(pruned.pipelines.map(\.name) == ["b"])
            #expect(pruned.failed.map(\.name) == ["a"])
            let reason = try #require(pruned.failed.first).reason
            #expect(reason.contains("strays"))
            #expect(try unowned(client) == ["a"])
            #expect(unlink(cache + "/strays") == 0)
            #expect(try client.prune(["a"]).pipelines.map(\.name) == ["a"])
            #expect(try unowned(client) == [])
        }
    }

    @Test("prune removes nothing if the configuration cannot be read")
    func unreadable() async throws {
        let home = try makeHome()
        _ = try await withDaemon(home) { client in
            #expect(try client.refresh("a").outcome == .changed)
            #expect(unlink(home.path + "/etc/pipelines/a.yaml") == 0)
            _ = try client.reload()
            try home.write("concurrency: none\n", to: "etc/freshet.yaml")
            #expect(throws: ControlClient.Failure.self) { try unowned(client) }
            #expect(throws: ControlClient.Failure.self) { try client.prune(["a"]) }
            #expect(home.copy("a.txt") == "one")
        }
    }
}
