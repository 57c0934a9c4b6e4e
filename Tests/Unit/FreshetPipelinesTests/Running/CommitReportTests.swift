import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The report of a run's end has the generation that the run committed")
struct CommitReportTests {
    @Test("for a run that changed the copy, and not for an unchanged or failed run")
    func outcomes() throws {
        let stage = try Stage()
        stage.origin.answers(.content("one"), .content("one"), .fails(RunFailure(.refused, "403")), .content("two"))
        try stage.start()
        for _ in 0..<4 {
            try stage.fire("file")
            try stage.advance(10)
        }
        #expect(stage.outcomes.prefix(3) == [.changed, .unchanged, .failed])
        #expect(stage.committed.prefix(3) == [1, nil, nil])
        let numbers = stage.committed.compactMap(\.self)
        #expect(numbers == [1, 2], "each generation is reported once")
    }

    @Test("for a run that was superseded after its commit")
    func superseded() throws {
        let stage = try Stage()
        let other = Stage.definition(RefreshPolicy(freshFor: .zero), transform: "upper")
        stage.origin.answers(.content("data"))
        stage.store.state.withLock { state in
            state.whenCommitted = { [runner = stage.runner, store = stage.store] in
                store.state.withLock { $0.whenCommitted = nil }
                runner.reconfigure(other, share: 0)
            }
        }
        try stage.start()
        try stage.fire("file")
        try stage.advance(10)
        #expect(stage.outcomes == [.superseded, .changed])
        #expect(stage.committed == [1, 2])
    }

    @Test("unless the operator has chosen another generation meanwhile")
    func rolledBack() throws {
        let stage = try Stage()
        stage.origin.answers(.content("data"))
        stage.store.state.withLock { state in
            state.whenCommitted = { [runner = stage.runner] in
                var chosen = CurrentGeneration(number: 9, size: 4, digest: "", committedAt: 0, path: "data")
                chosen.revision = 7
                runner.publishes(chosen)
            }
        }
        try stage.start()
        try stage.fire("file")
        #expect(stage.outcomes == [.changed])
        #expect(stage.committed == [nil])
    }
}
