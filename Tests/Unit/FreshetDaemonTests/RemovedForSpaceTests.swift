import FreshetControl
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Content that was removed to free space", .serialized, .hangLimit)
struct RemovedForSpaceTests {
    /// A home with a quota for one of two contents.
    private func makeHome() throws -> Home {
        let home = try Home()
        try home.write("cache: {max-total: 1M, min-free: 0%}\n", to: "etc/freshet.yaml")
        try home.configure("a", source("a", home) + "check: {exec: [/bin/sh, -c, 'exit 3']}\n")
        try home.configure("b", source("b", home))
        for name in ["a", "b"] { try home.write(String(repeating: name, count: 600 << 10), to: name + ".txt") }
        return home
    }

    private func source(_ name: String, _ home: Home) -> String {
        """
        source: {file: \(home.path)/\(name).txt}
        refresh: {on: [], min-interval: 0, fresh-for: 0, retry: {from: 365d, to: 365d}}
        cache: {file: \(name).txt, format: text}

        """
    }

    private func candidate(_ client: ControlClient) -> String? {
        (try? client.status("a"))?.candidate?.digest
    }

    @Test("the status of a pipeline does not show a removed candidate any more")
    func refused() async throws {
        let home = try makeHome()
        _ = try await withDaemon(home) { client in
            let refused = try client.refresh("a")
            #expect(refused.outcome == .failed)
            #expect(candidate(client) != nil)
            let other = try client.refresh("b")
            #expect(other.outcome == .changed)
            #expect(eventually { candidate(client) == nil })
        }
    }
}
