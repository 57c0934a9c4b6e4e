import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The daemon's generations", .serialized, .hangLimit)
struct GenerationTests {
    /// A pipeline that copies a file on request.
    private static func following(_ path: String) -> String {
        "source: {file: \(path)}\nrefresh: {on: [], fresh-for: 0, min-interval: 0}\ncache: {file: a.txt, keep: 9}\n"
    }

    /// Creates a home with a pipeline `a` that has had these contents, one after the other.
    private func withHistory(
        _ contents: [String], _ log: LogRecorder = LogRecorder(),
        _ body: @escaping @Sendable (Home, ControlClient) throws -> Void
    ) async throws {
        let home = try Home()
        try home.write("nothing", to: "source.txt")
        try home.configure("a", Self.following(home.path + "/source.txt"))
        try home.configure("b", "source: {pipeline: a}\ncache: {file: b.txt}\n")
        _ = try await withDaemon(home, log) { client in
            for content in contents {
                try home.write(content, to: "source.txt")
                #expect(try client.refresh("a").outcome == .changed)
            }
            try body(home, client)
        }
    }

    private func content(_ number: Int64, _ client: ControlClient) throws -> String {
        var bytes: [UInt8] = []
        try client.read(number, of: "a") { piece in
            bytes += piece
            return true
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("generations are listed with their causes, and can be read")
    func history() async throws {
        try await withHistory(["one", "two"]) { home, client in
            // The record is written after the reply about the end of the run.
            #expect(
                eventually {
                    guard let history = try? client.history(of: "a") else { return false }
                    return history.generations.allSatisfy { $0.causes == [SignalCount("operator")] }
                })
            let history = try client.history(of: "a").generations
            #expect(history.map(\.number) == [2, 1])
            #expect(history.map(\.current) == [true, false])
            #expect(history.map(\.kept) == [true, true])
            #expect(history.allSatisfy { $0.durationUSec != nil })
            #expect(try content(1, client) == "one")
            #expect(try content(2, client) == "two")
            let missing = ControlError.noSuchGeneration(name: "a", number: 3, kept: [1, 2])
            #expect(throws: ControlClient.Failure.refused(missing)) { try content(3, client) }
        }
    }

    @Test(
        "a rollback is published; a check with the previous content keeps it, and new content replaces it")
    func rollback() async throws {
        let log = LogRecorder()
        try await withHistory(["one", "two"], log) { home, client in
            #expect(eventually { home.copy("b.txt") == "two" })
            let reply = try client.rollBack("a")
            #expect(reply.generation.number == 1 && reply.replaced == 2 && reply.generation.behind == true)
            #expect(home.copy("a.txt") == "one")
            #expect(eventually { home.copy("b.txt") == "one" })
            var status = try client.status("a")
            #expect(status.generation?.number == 1 && status.generation?.behind == true)
            #expect(status.freshness == .stale)
            let result = try client.refresh("a")
            #expect(result.outcome == .unchanged && result.generation == 1 && result.behind == true)
            status = try client.status("a")
            #expect(status.generation?.behind == true && status.freshness == .stale)
            #expect(home.copy("a.txt") == "one")
            try home.write("three", to: "source.txt")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(home.copy("a.txt") == "three")
            status = try client.status("a")
            #expect(status.generation?.number == 3 && status.generation?.behind == nil)
            #expect(status.freshness == .fresh)
        }
        let line = log.lines.first { $0.metadata["message-id"] == JournalMessage.rolledBack.rawValue }
        #expect(line?.metadata["generation"] == "1")
        #expect(line?.metadata["replaced"] == "2")
        #expect(line?.metadata["requested-by"] == "user \(geteuid()), process \(getpid())")
    }

    @Test("a pinned copy stays, and new content of the source is logged once; after unpin the next check publishes it")
    func pin() async throws {
        let log = LogRecorder()
        try await withHistory(["one"], log) { home, client in
            #expect(try client.pin("a").changed)
            #expect(try !client.pin("a").changed)
            try home.write("two", to: "source.txt")
            for _ in 1...2 { #expect(try client.refresh("a").outcome == .unchanged) }
            #expect(home.copy("a.txt") == "one")
            let generation = try #require(try client.status("a").generation)
            #expect(generation.pinnedSince != nil && generation.behind == true)
            #expect(throws: ControlClient.Failure.refused(.pinned(name: "a", number: 1))) { try client.rollBack("a") }
            #expect(try client.unpin("a").changed)
            #expect(try !client.unpin("a").changed)
            #expect(try client.status("a").generation?.pinnedSince == nil)
            #expect(try client.refresh("a").outcome == .changed)
            #expect(home.copy("a.txt") == "two")
        }
        func count(_ message: JournalMessage) -> Int {
            log.lines.count { $0.metadata["message-id"] == message.rawValue }
        }
        #expect(count(.pinned) == 1 && count(.unpinned) == 1 && count(.heldBack) == 1)
    }

    @Test("a rollback that the system refuses is reported, and the copy stays")
    func refused() async throws {
        try await withHistory(["one", "two"]) { home, client in
            let generations = home.path + "/cache/below/generations"
            // No candidate can be written, whichever client requests it.
            #expect(rename(generations + "/a", generations + "/moved") == 0)
            #expect(symlink("a", generations + "/a") == 0)
            let failure = #expect(throws: ControlClient.Failure.self) { try client.rollBack("a", to: 1) }
            guard case .refused(.failed("a", let reason)) = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(reason.contains("generations/a/"))
            let generation = try client.status("a").generation
            #expect(generation?.number == 2)
            #expect(home.copy("a.txt") == "two")
        }
    }

    @Test("a pipeline can be unpinned also if the pinned file is missing")
    func unpinWithoutCopy() async throws {
        try await withHistory(["one"]) { home, client in
            #expect(try client.pin("a").changed)
            try home.write("two", to: "source.txt")
            #expect(try client.refresh("a").outcome == .unchanged)
            // The content, too: the daemon would publish it again. And held: the daemon would fetch it again.
            _ = try client.hold("a")
            TemporaryDirectory.remove(home.path + "/cache/below/generations/a")
            #expect(unlink(home.path + "/cache/below/current/a.txt") == 0)
            let reply = try client.unpin("a")
            #expect(reply.changed && reply.generation == nil)
            let generation = try client.status("a").generation
            #expect(generation?.pinnedSince == nil && generation?.behind == nil)
            _ = try client.release("a")
            // The daemon may have fetched it already: it noticed the loss.
            #expect(try client.refresh("a").outcome != .failed)
            #expect(home.copy("a.txt") == "two")
        }
    }

    @Test("generations of an invalid pipeline can be listed and pinned, but not published")
    func invalid() async throws {
        let home = try Home()
        try home.configure("a", Home.printing("one", to: "a.txt"))
        _ = try await withDaemon(home) { client in
            #expect(eventually { home.copy("a.txt") == "one\n" })
            #expect(eventually { (try? client.status("a").state) == .loaded })
        }
        try home.configure("a", "source: {}\n")
        _ = try await withDaemon(home) { client in
            let history = try client.history(of: "a").generations
            #expect(history.map(\.current) == [true])
            #expect(try content(1, client) == "one\n")
            #expect(try client.pin("a").changed)
            #expect(try client.status("a").generation?.pinnedSince != nil)
            let refusal = ControlClient.Failure.refused(.invalidPipeline(name: "a"))
            #expect(throws: refusal) { try client.rollBack("a") }
            #expect(throws: refusal) { try client.loadMore(ControlMessage.LoadMore(name: "a")) }
        }
        try home.configure("a", Home.printing("two", to: "a.txt"))
        _ = try await withDaemon(home) { client in
            let outcome = try client.refresh("a").outcome
            #expect(outcome == .unchanged)
            #expect(home.copy("a.txt") == "one\n")
        }
    }
}
