import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

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
            #expect(unlink(home.path + "/cache/below/current/news") == 0)
            #expect(unlink(home.path + "/input") == 0)
            #expect(try client.refresh("news").outcome == .failed)
            #expect(home.copy("news") == "one", "before the caller is answered")
            let status = try client.status("news")
            #expect(status.generation?.number == 1)
            #expect(status.lastCheck != nil)
            #expect(log.lines.contains { $0.message.hasPrefix("the cache was repaired") })
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
            TemporaryDirectory.remove(home.path + "/cache/below")
            #expect(unlink(home.path + "/input") == 0)
            #expect(try client.refresh("news").outcome == .failed)
            #expect(try client.status("news").generation == nil)
            try home.write("two", to: "input")
            #expect(try client.refresh("news").outcome == .changed)
            #expect(home.copy("news") == "two")
        }
    }
}
