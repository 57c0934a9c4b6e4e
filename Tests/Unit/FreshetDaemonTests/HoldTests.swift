import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import Logging
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Holding a pipeline", .serialized, .hangLimit)
struct HoldTests {
    private func configure(_ home: Home) throws {
        try home.write("one", to: "data")
        try home.configure("a", "source: {file: \(home.path)/data}\nrefresh: {on: []}\ncache: {file: a.txt}\n")
    }

    private func remove(_ home: Home, _ client: ControlClient) throws {
        try home.configure("a", nil)
        _ = try client.reload()
    }

    private func bringBack(_ home: Home, _ client: ControlClient) throws {
        try configure(home)
        _ = try client.reload()
    }

    @Test("a hold survives the removal and return of its pipeline, which is logged, and ends when that is pruned")
    func removed() async throws {
        let home = try Home()
        try configure(home)
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(try client.refresh("a").outcome == .changed)
            #expect(try client.hold("a").changed)
            let since = try #require(try client.status("a").heldSince)
            try remove(home, client)
            #expect(throws: ControlClient.Failure.self) { try client.release("a") }
            try bringBack(home, client)
            #expect(try client.status("a").heldSince == since)
            #expect(try client.status("a").state == .held)
            #expect(try client.refresh("a").failure?.contains("it is held") == true)
            // Pruning removes the hold together with all other data of the pipeline.
            try remove(home, client)
            #expect(try client.prune(["a"]).pipelines.map(\.name) == ["a"])
            try bringBack(home, client)
            #expect(try client.status("a").heldSince == nil)
            #expect(try client.refresh("a").outcome == .changed)
            // A release ends the hold too.
            #expect(try client.hold("a").changed)
            #expect(try client.release("a").changed)
            try remove(home, client)
            try bringBack(home, client)
            #expect(try client.status("a").heldSince == nil)
        }
        let lines = log.lines.filter { $0.metadata["message-id"] == JournalMessage.held.rawValue }
        #expect(lines.map { $0.metadata["requested-by"] != nil } == [true, false, true])
        #expect(lines.map(\.message)[1] == "still held: the pipeline does not run until it is released")
        #expect(lines.allSatisfy { $0.level == .notice && $0.metadata["pipeline"] == "a" })
    }

    @Test("a refused request is neither counted nor published as a signal")
    func refused() async throws {
        let home = try Home()
        try configure(home)
        _ = try await withDaemon(home) { client in
            func requests() throws -> (counted: Int64?, published: Int) {
                (
                    try client.signals().first { $0.name == "operator" }?.fired,
                    try client.recentEvents(["a"]).events.count { $0.kind == .signal && $0.signal == "operator" }
                )
            }
            #expect(try client.refresh("a").outcome == .changed)
            #expect(try requests() == (1, 1))
            #expect(try client.hold("a").changed)
            #expect(try client.refresh("a").failure?.contains("it is held") == true)
            try client.refresh(ControlMessage.Refresh(names: ["a"])) {
                #expect($0.failure?.contains("it is held") == true)
            }
            #expect(throws: ControlClient.Failure.self) {
                try client.loadMore(ControlMessage.LoadMore(name: "a"))
            }
            #expect(try client.release("a").changed)
            #expect(throws: ControlClient.Failure.self) {
                try client.loadMore(ControlMessage.LoadMore(name: "a"))
            }
            #expect(try requests() == (1, 1))
            #expect(try client.refresh("a").outcome == .unchanged)
            #expect(try requests() == (2, 2))
        }
    }

    @Test("an invalid pipeline can be held and released, and does not run after the release")
    func invalid() async throws {
        let home = try Home()
        try home.configure("a", "nonsense: 1\n")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            let held = (try client.hold("a").changed, try client.status("a").heldSince)
            #expect(held.0 && held.1 != nil)
            #expect(try client.release("a").changed)
            #expect(try client.status("a").heldSince == nil)
            #expect(try client.status("a").state == .failed)
        }
        let line = log.lines.first { $0.metadata["message-id"] == JournalMessage.released.rawValue }
        #expect(line?.message == "released; the pipeline does not run while its configuration has errors")
    }

    /// Runs a daemon in this process, and calls `body` with it when it is ready.
    private func withHost(_ body: (PipelineHost) async throws -> Void) async throws {
        let home = try Home()
        try configure(home)
        let log = LogRecorder()
        try await DaemonLoop.run { loop in
            let daemon = try Daemon(options: home.options, loop: loop, log: log.logger)
            let life = Task(executorPreference: loop) { await daemon.run() }
            #expect(await eventually { log.lines.contains { $0.message == "ready" } })
            try await body(try #require(await daemon.collaborators?.host))
            daemon.end()
            #expect(await life.value == .success)
        }
    }

    @Test("a hold takes effect immediately, then waits for a reload; it stores nothing if that removes the pipeline")
    func race() async throws {
        try await withHost { host in
            let definitions = await host.running.map(\.definition)
            for isRemoved in [true, false] {
                await host.lock.acquire()
                let hold = Task(executorPreference: try DaemonLoop.shared.get()) { await host.failureOfHold("a") }
                #expect(await eventually { await host.heldSince("a") != nil })
                #expect(await host.store.remembered("a").heldSince == nil)
                await host.dismiss("a")
                if !isRemoved { await host.bringBack(definitions) }
                await host.lock.release()
                #expect(await hold.value == (isRemoved ? .noSuchPipeline(name: "a", suggestion: nil) : nil))
                #expect(await (host.store.remembered("a").heldSince == nil) == isRemoved)
                // The pipeline that was added again has the state too.
                #expect(await (host.heldSince("a") == nil) == isRemoved)
                if isRemoved { await host.bringBack(definitions) }
            }
        }
    }

    @Test("a hold and a release that wait keep their order, also if another reload requests the lock")
    func order() async throws {
        try await withHost { host in
            await host.lock.acquire()
            let hold = Task(executorPreference: try DaemonLoop.shared.get()) {
                try await host.hold("a", true, caller: "test")
            }
            #expect(await eventually { await host.heldSince("a") != nil })
            let release = Task(executorPreference: try DaemonLoop.shared.get()) {
                try await host.hold("a", false, caller: "test")
            }
            #expect(await eventually { await host.heldSince("a") == nil })
            await host.lock.releaseAndReacquire()
            await host.lock.release()
            let answers = [try await hold.value, try await release.value]
            #expect(answers == [true, true])
            #expect(await host.heldSince("a") == nil)
            #expect(await host.store.remembered("a").heldSince == nil)
        }
    }

    @Test("the reply that a pipeline is already held comes only after the hold is stored")
    func already() async throws {
        try await withHost { host in
            await host.lock.acquire()
            let first = Task(executorPreference: try DaemonLoop.shared.get()) {
                try await host.hold("a", true, caller: "test")
            }
            #expect(await eventually { await host.heldSince("a") != nil })
            let second = Task(executorPreference: try DaemonLoop.shared.get()) { () -> (isNew: Bool, isKept: Bool) in
                let isNew = try await host.hold("a", true, caller: "test")
                return (isNew, await host.store.remembered("a").heldSince != nil)
            }
            // A reply that does not wait would have come by then.
            for _ in 1...1_000 { await Task.yield() }
            await host.lock.release()
            let isNew = try await first.value
            #expect(isNew)
            let answer = try await second.value
            #expect(!answer.isNew && answer.isKept)
        }
    }
}

extension ReloadLock {
    /// Releases the lock and immediately requests it again, like a reload that reached the actor in between.
    fileprivate func releaseAndReacquire() async {
        release()
        await acquire()
    }
}

extension PipelineHost {
    fileprivate func failureOfHold(_ name: String) async -> ControlError? {
        do throws(ControlError) {
            _ = try await hold(name, true, caller: "test")
            return nil
        } catch {
            return error
        }
    }

    /// Hosts all configured pipelines again.
    fileprivate func bringBack(_ definitions: [PipelineDefinition]) async {
        for definition in definitions { await host(definition) }
    }
}
