import CSQLite
import FreshetModel
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A commit and the index")
struct CommitQueryTests {
    private let fixture: CacheFixture

    init() throws {
        fixture = try CacheFixture()
        _ = try fixture.cache.ownership.assign([("jwks", "jwks.json")])
    }

    private func statements() throws -> Int64 {
        try fixture.cache.context.reading { (index) throws(SQLiteError) in index.database.statementRuns }
    }

    private func commit(_ text: String) throws -> CommitOutcome {
        let pending = try fixture.cache.begin(.jwks, isWhole: true)
        try pending.write(Array(text.utf8))
        return try pending.commit(
            validators: [.tag(text)], at: WallTime(seconds: 1000), values: ["binding": Array("b".utf8)])
    }

    /// The copy as the index has it.
    private func indexed() throws -> CurrentGeneration? { try fixture.cache.current("jwks")?.withoutRevision }

    @Test("exchange few statements: one before, and two transactions")
    func statementCount() throws {
        let before = try statements()
        _ = try commit("one")
        // Before: 1. Step 5: begin, row, 2 for the validators, commit. Step 10: begin, row, generation, history, current,
        // validators, success, 3 for the value, surplus, commit; and then the size of all content, which a trigger keeps.
        let first = try statements()
        #expect(first - before == 20)
        _ = try commit("two")
        // The value is the same, so it is only read; the generation before is read too.
        let second = try statements()
        #expect(second - first == 19)
    }

    @Test("agree about the copy after a first commit, a further one, a rollback and an accepted candidate")
    func agree() throws {
        for text in ["one", "two"] {
            guard case .changed(let made) = try commit(text) else { throw TestFailure() }
            #expect(try indexed() == made.withoutRevision)
        }
        let restored = try fixture.cache.generations.rollBack(.jwks, to: nil).generation
        #expect(restored.isBehind)
        #expect(try indexed() == restored.withoutRevision)
        try fixture.reject("three")
        let accepted = try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 1002)).generation
        #expect(try indexed() == accepted.withoutRevision)
        guard case .changed(let newest) = try commit("four") else { throw TestFailure() }
        #expect(try indexed() == newest.withoutRevision)
    }

    @Test("take no lock for the statistics of SQLite's memory, which are not kept")
    func memoryStatistics() throws {
        _ = try commit("one")
        #expect(SQLiteDatabase.countsNoMemory)
        #expect(sqlite3_memory_used() == 0)
    }

    @Test("agree about a pinned generation other than the current one")
    func pinned() throws {
        _ = try commit("one")
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 1001))
        let known = try fixture.cache.context.reading { (index) throws(SQLiteError) in
            let row = try index.pipelines.row("jwks")
            if let row { try index.pipelines.setCurrent(nil, of: row.id) }
            return try index.commits.row(of: "jwks")
        }
        #expect(known.publication == nil)
        #expect(known.held?.content.number == 1)
        #expect(known.pipeline?.pin?.content == known.held?.content)
    }
}

private struct TestFailure: Error {}
