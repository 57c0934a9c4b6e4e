import FreshetControl
import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

/// Removes the whole cache of a daemon that cannot fetch the content again. It may publish a copy again while its
/// directory is being removed.
private func removeCache(of home: Home) {
    let cache = home.path + "/cache/below"
    #expect(
        eventually {
            TemporaryDirectory.remove(cache)
            return access(cache, F_OK) != 0
        })
}

@Suite("A failed run while the published file is missing")
struct CopyRestorationTests {
    private func text(_ home: Home) -> String {
        "source: {exec: [/bin/cat, \(home.path)/input]}\ncache: {file: news}\nrefresh: {on: [], retry: {from: 365d, to: 365d}}\n"
    }

    @Test("the failed run restores the copy if the generation is intact, and logs it")
    func putBack() async throws {
        let home = try Home()
        let log = LogRecorder()
        try home.write("one", to: "input")
        try home.configure("news", text(home))
        _ = try await withDaemon(home, log) { client in
            #expect(try client.refresh("news").outcome == .changed)
            // First the input: the daemon notices the removal of the file, and would fetch the same content again.
            #expect(unlink(home.path + "/input") == 0)
            #expect(unlink(home.path + "/cache/below/current/news") == 0)
            #expect(try client.refresh("news").outcome == .failed)
            #expect(home.copy("news") == "one", "before the caller is answered")
            let status = try client.status("news")
            #expect(status.generation?.number == 1)
            #expect(status.lastCheck != nil)
            #expect(log.lines.contains { $0.message.hasPrefix("the cache was repaired") })
        }
    }

    /// The watch of the published files finds removed names only.
    @Test("the failed run restores a copy that another file has replaced, which no watch finds")
    func replaced() async throws {
        let home = try Home()
        try home.write("one", to: "input")
        try home.configure("news", text(home))
        _ = try await withDaemon(home) { client in
            #expect(try client.refresh("news").outcome == .changed)
            try home.write("theirs", to: "theirs")
            #expect(unlink(home.path + "/input") == 0)
            #expect(rename(home.path + "/theirs", home.path + "/cache/below/current/news") == 0)
            #expect(home.copy("news") == "theirs")
            #expect(try client.refresh("news").outcome == .failed)
            #expect(home.copy("news") == "one")
            #expect(try client.status("news").generation?.number == 1)
        }
    }

    @Test("the failed run leaves the pipeline without a copy if the content was changed in place, which no watch finds")
    func edited() async throws {
        let home = try Home()
        try home.write("one", to: "input")
        try home.configure("news", text(home))
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            // The generation's own file is a hard link to this one.
            let file = open(home.path + "/cache/below/current/news", O_WRONLY)
            #expect(Glibc.write(file, "ONE", 3) == 3)
            close(file)
            #expect(unlink(home.path + "/input") == 0)
            #expect(try client.status("news").generation != nil)
            #expect(try client.refresh("news").outcome == .failed)
            #expect(try client.status("news").generation == nil)
        }
    }

    @Test("the status shows no copy if no content is intact")
    func lost() async throws {
        let home = try Home()
        try home.write("one", to: "input")
        try home.configure("news", text(home))
        _ = try await withDaemon(home) { client in
            #expect(try client.refresh("news").outcome == .changed)
            #expect(try client.status("news").generation != nil)
            #expect(unlink(home.path + "/input") == 0)
            removeCache(of: home)
            #expect(try client.refresh("news").outcome == .failed)
            #expect(try client.status("news").generation == nil)
            try home.write("two", to: "input")
            // The daemon may have fetched it already: it noticed the removal.
            #expect(try client.refresh("news").outcome != .failed)
            #expect(home.copy("news") == "two")
        }
    }
}

@Suite("Removals that come together")
struct RemovalTests {
    @Test("are one removal of all files")
    func names() {
        var removal = PublishedFileWatch.Removal.files(["a"])
        removal.add(.files(["b"]))
        #expect(removal == .files(["a", "b"]))
    }

    @Test("are unknown if one of them is, or if they are very many")
    func unknown() {
        for others in [PublishedFileWatch.Removal.unknown, .files(Set((0..<5000).map(String.init)))] {
            var removal = PublishedFileWatch.Removal.files(["a"])
            removal.add(others)
            #expect(removal == .unknown)
        }
        var removal = PublishedFileWatch.Removal.unknown
        removal.add(.files(["a"]))
        #expect(removal == .unknown)
    }

    @Test(
        "concern the directories above, except the root",
        arguments: [
            ("/var/cache/freshet/current", ["/var/cache/freshet", "/var/cache", "/var"]), ("/current", []),
        ])
    func ancestors(_ path: String, _ above: [String]) {
        #expect(PublishedFileWatch.ancestors(of: path) == above)
    }
}

@Suite("A published file that another program removes")
struct RemovedFileTests {
    /// How the file is removed.
    enum Removal: String, CaseIterable, Sendable {
        case unlinked, renamed, withDirectory, withRenamedDirectory

        func perform(in home: Home) throws {
            let directory = home.path + "/cache/below/current"
            switch self {
            case .unlinked: try #require(unlink(directory + "/news") == 0)
            case .renamed:
                // Not twice to the same name: rename(2) does nothing if both names are links to the same file.
                let aside = home.path + "/aside-\(UInt64.random(in: 0 ... .max))"
                try #require(rename(directory + "/news", aside) == 0)
            case .withDirectory: TemporaryDirectory.remove(directory)
            case .withRenamedDirectory:
                let aside = home.path + "/aside-\(UInt64.random(in: 0 ... .max))"
                try #require(rename(directory, aside) == 0)
            }
        }
    }

    private let text = "source: {exec: [/bin/echo, one]}\ncache: {file: news}\nrefresh: {on: []}\n"

    @Test("is published again without a run", arguments: Removal.allCases)
    func publishedAgain(_ removal: Removal) async throws {
        let home = try Home()
        try home.configure("news", text)
        _ = try await withDaemon(home) { client in
            #expect(try client.refresh("news").outcome == .changed)
            // Twice, because a watch of a directory that was removed has ended.
            for _ in 0..<2 {
                try removal.perform(in: home)
                #expect(try eventually { try home.copy("news") == "one\n" && client.status("news").generation != nil })
            }
            let status = try client.status("news")
            #expect(status.generation?.number == 1)
            #expect(status.lastRun?.number == 1)
        }
    }

    @Test("is fetched again if no content is intact")
    func lost() async throws {
        let home = try Home()
        try home.configure("news", text)
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            // Until the loss is noticed: the daemon may have published the copy again before the whole content was gone.
            #expect(
                try eventually {
                    let isNoticed = try client.status("news").lastRun.map { $0.number > 1 } ?? false
                    if !isNoticed { TemporaryDirectory.remove(home.path + "/cache/below") }
                    return isNoticed
                })
            #expect(eventually { home.copy("news") == "one\n" })
            // The directory that the commit made is watched.
            #expect(unlink(home.path + "/cache/below/current/news") == 0)
            #expect(eventually { home.copy("news") == "one\n" })
        }
    }

    @Test("is fetched again if a directory above was renamed and took the content along")
    func ancestorRenamed() async throws {
        let home = try Home()
        try home.configure("news", text)
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            try #require(rename(home.path + "/cache/below", home.path + "/aside") == 0)
            #expect(try eventually { try client.status("news").lastRun?.number == 2 && home.copy("news") == "one\n" })
            // The new directories are watched.
            #expect(unlink(home.path + "/cache/below/current/news") == 0)
            #expect(eventually { home.copy("news") == "one\n" })
        }
    }

    @Test("is known again after the next run, if its content came back")
    func cameBack() async throws {
        let home = try Home()
        try home.write("one", to: "input")
        try home.configure(
            "news",
            "source: {file: \(home.path)/input}\ncache: {file: news}\n"
                + "refresh: {on: [], quiet: 0, retry: {from: 365d, to: 365d}}\n")
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            let (below, aside) = (home.path + "/cache/below", home.path + "/aside")
            try #require(rename(home.path + "/input", home.path + "/no-input") == 0)
            try #require(rename(below, aside) == 0)
            #expect(try eventually { try client.status("news").generation == nil })
            #expect(try eventually { try client.status("news").lastRun?.outcome == .failed })
            try #require(
                system("rm -rf '\(below)'; mv '\(aside)' '\(below)'; cd '\(home.path)'; mv no-input input") == 0)
            _ = try client.refresh("news")
            #expect(try client.status("news").generation?.number == 1)
            #expect(unlink(below + "/current/news") == 0)
            #expect(eventually { home.copy("news") == "one" })
        }
    }

    @Test("is published again as soon as that is possible, without a run, and the journal says why it was not")
    func retried() async throws {
        let home = try Home()
        let log = LogRecorder()
        try home.configure("news", text)
        _ = try await withDaemon(home, log) { client in
            try #require(client.refresh("news").outcome == .changed)
            let directory = home.path + "/cache/below/current"
            try home.write("in the way", to: "file")
            // Freshet may have made the directory again in between.
            var isInTheWay = false
            for number in 0..<1000 where !isInTheWay {
                _ = rename(directory, home.path + "/aside-\(number)")
                isInTheWay = rename(home.path + "/file", directory) == 0
            }
            try #require(isInTheWay)
            #expect(
                eventually {
                    log.lines.contains { $0.metadata["message-id"] == JournalMessage.notRestored.rawValue }
                })
            #expect(unlink(directory) == 0)
            #expect(eventually { home.copy("news") == "one\n" })
            #expect(try client.status("news").lastRun?.number == 1)
        }
    }

    @Test("is restored or fetched again also if it is made from another pipeline's copy that is missing too")
    func dependents() async throws {
        let home = try Home()
        try home.configure("news", text)
        let names = (1...4).map { "after\($0)" }
        for name in names { try home.configure(name, "source: {pipeline: news}\ncache: {file: \(name)}\n") }
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            func isWhole() -> Bool { (["news"] + names).allSatisfy { home.copy($0) == "one\n" } }
            #expect(eventually { isWhole() })
            TemporaryDirectory.remove(home.path + "/cache/below")
            #expect(eventually { isWhole() })
        }
    }

    @Test("runs the pipelines again that run after it, because they may have found no copy in between")
    func runsAfter() async throws {
        let home = try Home()
        try home.configure("news", text)
        try home.configure("after", "source: {pipeline: news}\ncache: {file: after}\n")
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            #expect(eventually { home.copy("after") == "one\n" })
            let before = try client.status("after").lastRun?.number ?? 0
            #expect(unlink(home.path + "/cache/below/current/news") == 0)
            #expect(try eventually { try client.status("after").lastRun?.number ?? 0 > before })
        }
    }

    @Test("leaves a held pipeline without a copy if no content is intact, and is fetched after the release")
    func lostWhileHeld() async throws {
        let home = try Home()
        try home.configure("news", text)
        _ = try await withDaemon(home) { client in
            try #require(client.refresh("news").outcome == .changed)
            _ = try client.hold("news")
            removeCache(of: home)
            #expect(try eventually { try client.status("news").generation == nil })
            _ = try client.release("news")
            #expect(try eventually { try client.status("news").lastRun?.number == 2 && home.copy("news") == "one\n" })
            #expect(try client.status("news").lastRun?.causes.map(\.signal) == ["loss"])
        }
    }
}
