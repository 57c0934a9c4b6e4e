import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What a runner knows about its content")
struct CopyRecordTests {
    private let candidate = RejectedCandidate(digest: "cut", size: 1, rejectedAt: 50, keptUntil: 90, reason: "a check")

    private func generation(_ number: UInt64, _ digest: ContentDigest, revision: UInt64 = 0) -> CurrentGeneration {
        var generation = CurrentGeneration(number: number, size: 1, digest: digest, committedAt: 0, path: "data")
        generation.revision = revision
        return generation
    }

    private func record(_ current: CurrentGeneration? = nil, isKnown: Bool = false) -> CopyRecord {
        var remembered = PersistentState()
        remembered.generation = current
        return CopyRecord(remembered, isKnown: isKnown)
    }

    private func events(_ record: inout CopyRecord, withdraws: Bool = false, findsExpiry: Bool = false)
        -> [RefreshEvent]
    {
        record.events(withdraws: withdraws, findsExpiry: findsExpiry, now: Dialogue.instant(0)) { 100 }
    }

    @Test("an older state of the copy does not replace a newer one; accepted content stops being a candidate")
    func newest() {
        var record = record(generation(2, "two", revision: 7))
        record.record(generation(1, "one", revision: 6))
        #expect(record.generation?.number == 2)
        record.record(RunProgress.Rejected(snapshot: candidate), by: 3)
        record.record(generation(3, "cut", revision: 8))
        #expect(record.generation?.number == 3 && record.rejected == nil)
    }

    @Test("the operator's acceptance names the run, and counts as a check at the time of the rejection")
    func accepts() {
        var record = record()
        record.record(RunProgress.Rejected(snapshot: candidate), by: 3)
        #expect(record.accept(generation(1, "other")) == nil)
        #expect(record.rejected == candidate && record.lastCheck == nil)
        #expect(record.accept(generation(2, "cut")) == 3)
        #expect(record.rejected == nil && record.lastCheck == 50)
    }

    @Test("a run that rejects what was accepted meanwhile has confirmed the copy")
    func confirms() {
        var record = record(generation(1, "one"))
        #expect(record.confirm(candidate, at: 60) == nil)
        record.record(generation(2, "cut"))
        #expect(record.confirm(candidate, at: 60)?.number == 2)
        #expect(record.lastCheck == 60)
    }

    @Test("the comment belongs to the content that was signed")
    func comment() {
        var record = record(generation(1, "one"))
        let comment = SignedComment(digest: "one", comment: "v1")
        let isNew = [record.record(comment), record.record(comment)]
        #expect(isNew == [true, false])
        #expect(record.current?.comment == "v1")
        record.record(generation(2, "two"))
        #expect(record.current?.comment == nil)
    }

    @Test("the machine gets the state of the copy once, if a copy may be withdrawn")
    func copyEvents() {
        var record = record(generation(1, "one"))
        #expect(events(&record) == [])
        #expect(!record.concernsMachine)
        #expect(events(&record, withdraws: true) == [.copy(CopyState(number: 1))])
        #expect(events(&record, withdraws: true) == [])
        #expect(record.concernsMachine)
        record.loseWithdrawn()
        #expect(events(&record, withdraws: true) == [.copyLost])
        record.record(generation(2, "two"))
        #expect(events(&record, withdraws: true) == [.copy(CopyState(number: 2))])
    }

    @Test("the machine gets the stated expiry once, and that there is none any more")
    func expiryEvents() {
        var current = generation(1, "one")
        current.contentExpires = WallTime(integerLiteral: 100).advanced(by: .seconds(5))
        var record = record(current)
        #expect(events(&record) == [])
        #expect(events(&record, findsExpiry: true) == [.contentExpires(Dialogue.instant(5))])
        #expect(events(&record, findsExpiry: true) == [])
        #expect(events(&record) == [.contentExpires(nil)])
        #expect(events(&record) == [])
    }
}
