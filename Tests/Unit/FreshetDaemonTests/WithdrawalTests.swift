import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import Logging
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetDaemon

@Suite("A daemon whose copies are withdrawn")
struct WithdrawalTests {
    private func configure(
        _ home: Home, _ name: String = "a", maxAge: String, withdraw: Bool = true, hook: String? = nil
    ) throws {
        let onChange = hook.map { "on-change: {exec: [/bin/sh, -c, '\($0)']}" } ?? ""
        try home.configure(
            name,
            """
            source: {file: \(home.path)/data}
            refresh: {on: [], min-interval: 0, fresh-for: 0, retry: {from: 365d, to: 365d}}
            cache: {file: \(name).txt, max-age: \(maxAge), withdraw: \(withdraw)}
            \(onChange)
            """)
    }

    private func isWithdrawn(_ client: ControlClient) -> Bool { (try? client.status("a"))?.withdrawn != nil }

    @Test("status, history and journal show a withdrawal; after a check the same copy is published again")
    func story() async throws {
        let home = try Home()
        try configure(home, maxAge: "1h")
        try home.write("one", to: "data")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(try client.refresh("a").outcome == .changed)
            #expect(home.copy("a.txt") == "one")
            try configure(home, maxAge: "1s")
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { isWithdrawn(client) })
            #expect(home.copy("a.txt") == nil)
            let status = try client.status("a")
            let copy = try #require(status.withdrawn)
            #expect(status.generation == nil && status.freshness == .expired)
            #expect(copy.number == 1 && copy.size == 3)
            #expect(try client.history(of: "a").generations.map(\.withdrawn) == [true])
            #expect(try client.history(of: "a").generations.map(\.current) == [false])
            let refusal = ControlClient.Failure.refused(.withdrawn(name: "a", number: 1, since: copy.since))
            #expect(throws: refusal) { try client.generation(of: "a") }
            #expect(throws: refusal) { try client.pin("a") }
            try configure(home, maxAge: "1h")
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { home.copy("a.txt") == "one" && !isWithdrawn(client) })
            #expect(try client.generation(of: "a").number == 1)
            _ = try client.pin("a")
            try configure(home, maxAge: "1s")
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { (try? client.status("a"))?.freshness == .expired })
            #expect(home.copy("a.txt") == "one")
            _ = try client.unpin("a")
            #expect(eventually { isWithdrawn(client) && home.copy("a.txt") == nil })
        }
        let lines = log.lines.filter {
            [JournalMessage.withdrawn, .returned].map(\.rawValue).contains($0.metadata["message-id"] ?? "")
        }
        #expect(lines.map(\.level) == [.warning, .info, .warning])
        #expect(lines.allSatisfy { $0.metadata["generation"] == "1" && $0.metadata["pipeline"] == "a" })
    }

    @Test("hooks run for a withdrawal without a current generation, also after a restart, and for the return")
    func hooks() async throws {
        let home = try Home()
        let hook = #"cat "$FRESHET_CHANGE" >> \#(home.path)/told; test -e \#(home.path)/works"#
        @Sendable func notifications() -> [String] {
            home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? []
        }
        try configure(home, maxAge: "1h", hook: hook)
        try home.write("one", to: "data")
        try home.write("", to: "works")
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("a")
            #expect(eventually { notifications().count == 1 && (try? client.status("a"))?.hooks == nil })
            try #require(unlink(home.path + "/works") == 0)
            try configure(home, maxAge: "1s", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { (try? client.status("a"))?.hooks?.first?.attempts ?? 0 > 0 })
        }
        let withdrawal = try #require(notifications().last)
        #expect(withdrawal.contains(#""current":null"#) && withdrawal.contains(#""causes":"withdrawn""#))
        #expect(withdrawal.contains(#""previous":{"#) && !withdrawal.contains("difference"))
        // The hook is still pending, and gets the same input again.
        try home.write("", to: "works")
        let before = notifications().count
        _ = try await withDaemon(home) { client in
            #expect(eventually { notifications().count == before + 1 && (try? client.status("a"))?.hooks == nil })
            #expect(notifications().last?.contains(#""causes":"withdrawn""#) == true)
            #expect(notifications().last?.contains(#""current":null"#) == true)
            try configure(home, maxAge: "1h", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { notifications().count == before + 2 })
        }
        let back = try #require(notifications().last)
        #expect(back.contains(#""number":1"#) && !back.contains("previous"))
    }

    @Test("before it is ready, the daemon withdraws copies that expired while it did not run; withdrawn ones stay so")
    func away() async throws {
        let home = try Home()
        try configure(home, maxAge: "1h")
        try home.write("one", to: "data")
        _ = try await withDaemon(home) { client in _ = try client.refresh("a") }
        #expect(home.copy("a.txt") == "one")
        // With another configuration the copy is too old already.
        try configure(home, maxAge: "1s")
        let checked = BootInstant.now
        #expect(await eventually { BootInstant.now > checked + .seconds(1) })
        for _ in 0..<2 {
            let log = LogRecorder()
            _ = try await withDaemon(home, log) { client in
                #expect(home.copy("a.txt") == nil)
                #expect(isWithdrawn(client))
            }
        }
        // A copy that the configuration does not withdraw any more is published again.
        try configure(home, maxAge: "1s", withdraw: false)
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(home.copy("a.txt") == "one")
            #expect(!isWithdrawn(client))
        }
        #expect(log.lines.count { $0.metadata["message-id"] == JournalMessage.returned.rawValue } == 1)
    }

    @Test("the daemon withdraws many copies, and logs each in the order of the names")
    func many() async throws {
        let home = try Home()
        // More copies than are withdrawn concurrently.
        let names = (10..<10 + CacheStore.commitsAtOnce + 8).map { "p\($0)" }
        for name in names { try configure(home, name, maxAge: "1h") }
        try home.write("one", to: "data")
        _ = try await withDaemon(home) { client in
            for name in names { _ = try client.refresh(name) }
        }
        for name in names { try configure(home, name, maxAge: "1s") }
        let checked = BootInstant.now
        #expect(await eventually { BootInstant.now > checked + .seconds(1) })
        for (message, copy) in [(JournalMessage.withdrawn, nil), (.returned, "one")] {
            let log = LogRecorder()
            _ = try await withDaemon(home, log) { client in
                #expect(names.allSatisfy { home.copy("\($0).txt") == copy })
                let states = try client.pipelines(names)
                #expect(states.allSatisfy { ($0.withdrawn == nil) == (copy != nil) && $0.name.hasPrefix("p") })
            }
            let lines = log.lines.filter { $0.metadata["message-id"] == message.rawValue }
            #expect(lines.map { $0.metadata["pipeline"] } == names)
            for name in names { try configure(home, name, maxAge: "1s", withdraw: false) }
        }
    }

    @Test("the withdrawal of a damaged copy, which is removed, is logged and runs hooks")
    func damaged() async throws {
        let home = try Home()
        let hook = #"cat "$FRESHET_CHANGE" >> \#(home.path)/told"#
        @Sendable func notifications() -> [String] {
            home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? []
        }
        try configure(home, maxAge: "1h", hook: hook)
        try home.write("one", to: "data")
        let log = LogRecorder()
        @Sendable func lines() -> [LogRecorder.Line] {
            log.lines.filter { $0.metadata["message-id"] == JournalMessage.withdrawn.rawValue }
        }
        _ = try await withDaemon(home, log) { client in
            _ = try client.refresh("a")
            #expect(eventually { notifications().count == 1 })
            try home.write("bad", to: "cache/below/current/a.txt")
            try configure(home, maxAge: "1s", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { lines().count == 1 && notifications().count == 2 })
            #expect(home.copy("a.txt") == nil)
            let status = try client.status("a")
            #expect(status.generation == nil && status.withdrawn == nil)
            // The next fetch publishes a copy as usual.
            try configure(home, maxAge: "1h", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(try client.refresh("a").failure == nil)
            #expect(home.copy("a.txt") == "one")
            #expect(eventually { notifications().count == 3 })
        }
        let line = try #require(lines().first)
        #expect(line.level == .warning && line.message.contains("damaged"))
        #expect(line.metadata["pipeline"] == "a" && line.metadata["generation"] == "1" && line.metadata["age"] != nil)
        let withdrawal = notifications()[1]
        #expect(withdrawal.contains(#""current":null"#) && withdrawal.contains(#""causes":"withdrawn""#))
        #expect(notifications()[2].contains(#""number":1"#))
    }

    @Test("the status of an invalid pipeline shows its withdrawn copy")
    func invalid() async throws {
        let home = try Home()
        try configure(home, maxAge: "1s")
        try home.write("one", to: "data")
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("a")
            #expect(eventually { isWithdrawn(client) })
        }
        try home.configure("a", "source: {file: \(home.path)/data}\ncache: {file: a.txt, max-age: soon}\n")
        _ = try await withDaemon(home) { client in
            let status = try client.status("a")
            #expect(status.generation == nil && status.withdrawn?.number == 1)
            #expect(home.copy("a.txt") == nil)
        }
    }

    @Test("the age counts from the last check, or from the writing of the file if that was later")
    func age() {
        var definition = PipelineDefinition(
            name: "a", source: .file("/data"), refresh: RefreshPolicy(), cache: CacheRules(file: "a"))
        definition.cache.maxAge = .seconds(10)
        definition.cache.withdraws = true
        var state = PersistentState(
            generation: CurrentGeneration(number: 1, size: 1, digest: "", committedAt: 1_000_000, path: "a"))
        func isDue(_ second: Int64) -> Bool {
            definition.isWithdrawn(state, at: WallTime(microseconds: second * 1_000_000))
        }
        #expect(!isDue(10) && isDue(11))
        state.lastCheck = 5_000_000
        #expect(!isDue(14) && isDue(15))
        state.generation?.writtenAt = 7_000_000
        #expect(!isDue(16) && isDue(17))
        #expect(!isDue(-100), "a clock that was set back makes nothing older")
        state.generation?.pinnedSince = 1
        #expect(!isDue(100))
        state.generation?.pinnedSince = nil
        definition.cache.withdraws = false
        #expect(!isDue(100))
    }
}
