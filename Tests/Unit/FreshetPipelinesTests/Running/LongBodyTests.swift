import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Answers that are stored while they are received")
struct LongBodyTests {
    private func run(_ stage: Stage, _ answer: ScriptedOrigin.Answer) throws {
        stage.origin.answers(answer)
        try stage.start()
        try stage.fire("start")
    }

    @Test("become the copy")
    func committed() throws {
        let stage = try Stage()
        try run(stage, .long("one", tag: "v1"))
        #expect(stage.outcomes == [.changed])
        #expect(stage.store.text == "one")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
        #expect(stage.status.generation?.size == 3)
        // The next request for them is conditional.
        stage.origin.answers(.version("one", tag: "v1"))
        try stage.advance(3600)
        try stage.fire("reload")
        #expect(stage.origin.asked.map { $0.validators?.entityTag } == [nil, "v1"])
        #expect(stage.outcomes == [.changed, .unchanged])
    }

    @Test("must be in memory if a program reads them")
    func inMemory() throws {
        for stage in [try Stage(transform: "upper"), try Stage(check: CheckRules(jq: "true"))] {
            try run(stage, .long("[1]"))
            #expect(stage.outcomes == [.changed])
            #expect(stage.store.state.withLock { $0.bodies }.isEmpty)
        }
    }

    /// A pipeline with a program, and a reservation of others that has all memory.
    private func limited() throws -> (Stage, MemoryBudget, MemoryReservation) {
        let budget = MemoryBudget(limit: 64 << 20)
        let definition = Stage.definition(RefreshPolicy(freshFor: .zero), transform: "upper")
        let stage = try Stage(definition, requestLimiter: 1, memory: budget)
        let others = try stage.executor.run { try? await budget.reserve(for: 0, .all) }
        return (stage, budget, try #require(others))
    }

    @Test("wait on disk for memory if a program reads them; then they are removed")
    func memory() throws {
        let (stage, budget, others) = try limited()
        try run(stage, .long("one"))
        #expect(stage.status.waitsFor == Wait(.memory, detail: "10 of 64 MiB (memory.max)"))
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [false])
        #expect(stage.requestLimiter.counts == (0, 0), "others may make requests meanwhile")
        // The time of the wait is not counted.
        try stage.advance(7200)
        #expect(stage.outcomes == [])
        others.release()
        try stage.executor.runUntilIdle()
        #expect(stage.outcomes == [.changed])
        #expect(stage.store.text == "ONE")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
        #expect(budget.counts == (0, 0))
    }

    @Test("are removed when the run is cancelled while they wait for memory")
    func cancelledInMemory() throws {
        let (stage, budget, others) = try limited()
        try run(stage, .long("one"))
        #expect(budget.counts.waiting == 1)
        stage.service?.cancel()
        try stage.executor.runUntilIdle()
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
        others.release()
        #expect(budget.counts == (0, 0))
    }

    @Test("are removed when a check or the store rejects them")
    func refused() throws {
        let small = try Stage(check: CheckRules(minBytes: 4))
        try run(small, .long("one"))
        let type = try Stage(check: CheckRules(types: ["text/plain"]))
        try run(type, .long("one", type: "text/html"))
        let full = try Stage()
        full.store.state.withLock { $0.failsCommits = true }
        try run(full, .long("one"))
        for stage in [small, type, full] {
            #expect(stage.outcomes == [.failed])
            #expect(stage.store.text == nil)
            #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
        }
    }

    @Test("are removed when the run is cancelled before they are committed")
    func cancelled() throws {
        let stage = try Stage()
        stage.origin.answers(.stubborn(.seconds(5), .long("one")))
        try stage.start()
        try stage.fire("start")
        stage.service?.cancel()
        try stage.advance(6)
        #expect(stage.store.text == nil)
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }
}
