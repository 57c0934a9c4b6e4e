import FreshetControl
import FreshetEventLoop
import FreshetVarlink
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Examination of the daemon's cache", .serialized, .hangLimit)
struct ExaminationTests {
    /// A home with a pipeline `a`, which copies a file on request, and a pipeline `b`, which runs after `a`.
    private func makeHome() throws -> Home {
        let home = try Home()
        try home.write("one", to: "source.txt")
        let refresh = "refresh: {on: [], fresh-for: 0, min-interval: 0}"
        try home.configure("a", "source: {file: \(home.path)/source.txt}\n\(refresh)\ncache: {file: a.txt, keep: 9}\n")
        try home.configure("b", "source: {pipeline: a}\ncache: {file: b.txt}\n")
        return home
    }

    private func examined(_ client: ControlClient, repair: Bool? = nil) throws -> ControlMessage.Examined {
        var total = ControlMessage.Examined()
        try client.examine(ControlMessage.Examine(repair: repair)) { total.add($0) }
        return total
    }

    @Test("the cache is examined and repaired while the daemon runs, and subscribers receive the change of the copy")
    func living() async throws {
        let home = try makeHome()
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(try client.refresh("a").outcome == .changed)
            try home.write("two", to: "source.txt")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { home.copy("b.txt") == "two" })
            // Readers see the copy shortly before the index contains it.
            #expect(eventually { (try? examined(client).generations) ?? 0 >= 3 })
            let sound = try examined(client)
            #expect(sound.left == 0 && sound.pipelines == 2 && sound.generations >= 2 && sound.bytes >= 6)
            // Written in place: the generation is the same file.
            try home.write("?!?", to: "cache/below/current/a.txt")
            try home.write("x", to: "cache/below/current/mine.txt")
            let found = try examined(client)
            #expect(found.findings.map(\.kind) == [.stray, .contentDamaged, .copyDamaged])
            #expect(found.left == 3 && home.copy("a.txt") == "?!?")
            let repaired = try examined(client, repair: true)
            #expect(repaired.findings.map(\.kind) == found.findings.map(\.kind) && repaired.left == 0)
            #expect(home.copy("a.txt") == "one")
            #expect(try client.status("a").generation?.number == 1)
            #expect(eventually { home.copy("b.txt") == "one" })
            #expect(try examined(client).left == 0)
            // The next request is unconditional.
            #expect(try client.refresh("a").outcome == .changed)
            #expect(home.copy("a.txt") == "two")
        }
        let lines = log.lines.filter { $0.metadata["message-id"] == JournalMessage.cacheRepaired.rawValue }
        #expect(lines.map { $0.metadata["pipeline"] } == ["none", "a"])
        #expect(lines.last?.metadata["repairs"]?.hasPrefix("a: generation 2 is damaged: ") == true)
    }

    @Test("an examination whose client has gone ends in the middle of a file")
    func gone() async throws {
        let home = try makeHome()
        _ = try await withDaemon(home) { client in
            #expect(try client.refresh("a").outcome == .changed)
            let path = home.path + "/cache/below/current/a.txt"
            var published = stat()
            try #require(stat(path, &published) == 0)
            // Whether the process has the published file open.
            func isRead() -> Bool {
                (Int32(3)..<1_024).contains { descriptor in
                    var status = stat()
                    return fstat(descriptor, &status) == 0 && status.st_ino == published.st_ino
                        && status.st_dev == published.st_dev
                }
            }
            // A sparse file, which takes an hour to read.
            try #require(truncate(path, 1 << 40) == 0)
            let caller = try VarlinkClient(path: home.socket)
            try caller.begin("io.freshet.Control.Examine", more: true)
            #expect(eventually { isRead() })
            caller.close()
            #expect(eventually { !isRead() })
            try #require(truncate(path, 3) == 0)
            #expect(try examined(client).left == 0)
        }
    }

    @Test("the cache is examined without a daemon, and not while a daemon uses it")
    func withoutDaemon() async throws {
        let home = try makeHome()
        func examined(repairs: Bool = false) -> DaemonExit {
            var request = ExaminationRequest()
            (request.isQuiet, request.json, request.repairs) = (true, true, repairs)
            return DaemonEntry.examine(request, home.options)
        }
        #expect(examined() == .failure, "nothing is there yet")
        _ = try await withDaemon(home) { client in
            let outcome = try client.refresh("a").outcome
            #expect(outcome == .changed)
            var request = ExaminationRequest()
            request.isQuiet = true
            #expect(DaemonEntry.examine(request, home.options) == .tryLater)
        }
        #expect(examined() == .success)
        #expect(unlink(home.path + "/cache/below/current/a.txt") == 0)
        #expect(examined() == .failure)
        #expect(home.copy("a.txt") == nil)
        #expect(examined(repairs: true) == .success)
        #expect(home.copy("a.txt") == "one")
    }
}
