import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import Glibc
import Logging
import TestSupport
import Testing

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

    @Test("says so in status, history and journal, has no copy to name, and offers the same one after a check")
    func story() async throws {
        let home = try Home()
        try configure(home, maxAge: "1h")
        try home.write("one", to: "data")
        let log = LogBook()
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

    @Test("tells its hooks of a withdrawal with no current generation, also after a restart, and of the return")
    func hooks() async throws {
        let home = try Home()
        let hook = #"cat "$FRESHET_CHANGE" >> \#(home.path)/told; test -e \#(home.path)/works"#
        @Sendable func told() -> [String] { home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? [] }
        try configure(home, maxAge: "1h", hook: hook)
        try home.write("one", to: "data")
        try home.write("", to: "works")
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("a")
            #expect(eventually { told().count == 1 && (try? client.status("a"))?.hooks == nil })
            try #require(unlink(home.path + "/works") == 0)
            try configure(home, maxAge: "1s", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { (try? client.status("a"))?.hooks?.first?.attempts ?? 0 > 0 })
        }
        let withdrawal = try #require(told().last)
        #expect(withdrawal.contains(#""current":null"#) && withdrawal.contains(#""causes":"withdrawn""#))
        #expect(withdrawal.contains(#""previous":{"#) && !withdrawal.contains("difference"))
        // It is owed still, and told with the same words.
        try home.write("", to: "works")
        let before = told().count
        _ = try await withDaemon(home) { client in
            #expect(eventually { told().count == before + 1 && (try? client.status("a"))?.hooks == nil })
            #expect(told().last?.contains(#""causes":"withdrawn""#) == true)
            #expect(told().last?.contains(#""current":null"#) == true)
            try configure(home, maxAge: "1h", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { told().count == before + 2 })
        }
        let back = try #require(told().last)
        #expect(back.contains(#""number":1"#) && !back.contains("previous"))
    }

    @Test("withdraws before it is ready what has expired while it was away, and leaves what it finds withdrawn")
    func away() async throws {
        let home = try Home()
        try configure(home, maxAge: "1h")
        try home.write("one", to: "data")
        _ = try await withDaemon(home) { client in _ = try client.refresh("a") }
        #expect(home.copy("a.txt") == "one")
        // By another configuration it is too old already.
        try configure(home, maxAge: "1s")
        let checked = ContinuousClock.now
        #expect(await eventually { ContinuousClock.now > checked + .seconds(1) })
        for _ in 0..<2 {
            let log = LogBook()
            _ = try await withDaemon(home, log) { client in
                #expect(home.copy("a.txt") == nil)
                #expect(isWithdrawn(client))
            }
        }
        // Nor is one that nobody wants withdrawn any more.
        try configure(home, maxAge: "1s", withdraw: false)
        let log = LogBook()
        _ = try await withDaemon(home, log) { client in
            #expect(home.copy("a.txt") == "one")
            #expect(!isWithdrawn(client))
        }
        #expect(log.lines.count { $0.metadata["message-id"] == JournalMessage.returned.rawValue } == 1)
    }

    @Test("does so with all of many, and says so of each in the order of their names")
    func many() async throws {
        let home = try Home()
        // More than are done at once.
        let names = (10..<10 + CacheStore.commitsAtOnce + 8).map { "p\($0)" }
        for name in names { try configure(home, name, maxAge: "1h") }
        try home.write("one", to: "data")
        _ = try await withDaemon(home) { client in
            for name in names { _ = try client.refresh(name) }
        }
        for name in names { try configure(home, name, maxAge: "1s") }
        let checked = ContinuousClock.now
        #expect(await eventually { ContinuousClock.now > checked + .seconds(1) })
        for (message, copy) in [(JournalMessage.withdrawn, nil), (.returned, "one")] {
            let log = LogBook()
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

    @Test("tells journal and hooks also of a copy that is taken away for good, since it was damaged")
    func damaged() async throws {
        let home = try Home()
        let hook = #"cat "$FRESHET_CHANGE" >> \#(home.path)/told"#
        @Sendable func told() -> [String] { home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? [] }
        try configure(home, maxAge: "1h", hook: hook)
        try home.write("one", to: "data")
        let log = LogBook()
        @Sendable func lines() -> [LogBook.Line] {
            log.lines.filter { $0.metadata["message-id"] == JournalMessage.withdrawn.rawValue }
        }
        _ = try await withDaemon(home, log) { client in
            _ = try client.refresh("a")
            #expect(eventually { told().count == 1 })
            try home.write("bad", to: "cache/below/current/a.txt")
            try configure(home, maxAge: "1s", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { lines().count == 1 && told().count == 2 })
            #expect(home.copy("a.txt") == nil)
            let status = try client.status("a")
            #expect(status.generation == nil && status.withdrawn == nil)
            // What is fetched then is a copy like any other.
            try configure(home, maxAge: "1h", hook: hook)
            _ = try client.reload(configurationOnly: true)
            #expect(try client.refresh("a").failure == nil)
            #expect(home.copy("a.txt") == "one")
            #expect(eventually { told().count == 3 })
        }
        let line = try #require(lines().first)
        #expect(line.level == .warning && line.message.contains("damaged"))
        #expect(line.metadata["pipeline"] == "a" && line.metadata["generation"] == "1" && line.metadata["age"] != nil)
        #expect(told()[1].contains(#""current":null"#) && told()[1].contains(#""causes":"withdrawn""#))
        #expect(told()[2].contains(#""number":1"#))
    }

    @Test("of a pipeline whose configuration has faults, shows what is withdrawn as that")
    func faulty() async throws {
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

    @Test("counts the age from the last check, or from when the file was written if that was later")
    func age() {
        var definition = PipelineDefinition(
            name: "a", source: .file("/data"), refresh: RefreshPolicy(), cache: CacheRules(file: "a"))
        definition.cache.maxAge = .seconds(10)
        definition.cache.withdraws = true
        var state = PersistentState(
            generation: CurrentGeneration(number: 1, size: 1, digest: "", committedAt: 1_000_000, path: "a"))
        func isDue(_ second: Int64) -> Bool { definition.isWithdrawn(state, at: second * 1_000_000) }
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
