import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A run from before a restart")
struct RememberedRunTests {
    private let now = BootInstant.now

    private func record(started: Int64, ended: Int64, causes: String = "start", outcome: RunOutcome = .changed)
        -> RunRecord
    {
        RunRecord(
            pipeline: "a", number: 7, causes: causes, started: WallTime(microseconds: started),
            ended: WallTime(microseconds: ended), outcome: outcome, generation: 3)
    }

    @Test("signals whose names differ only in their Unicode normalization are two causes")
    func normalization() {
        var causes: [RunCause] = []
        let names = ["file /\u{E9}", "file /e\u{301}", "file /K", "file /\u{212A}"]
        for name in names + names { causes.add(RunCause(name, first: now)) }
        #expect(causes.map { Array($0.signal.utf8) } == names.map { Array($0.utf8) })
        #expect(causes.allSatisfy { $0.count == 2 })
    }

    @Test(
        "has the stored causes, whatever their names contain",
        arguments: [
            [("start", 1)], [("network", 2), ("timer", 1)], [("file /srv/a (2)", 1), ("operator", 31)],
            [("file /srv/a b", 4)], [("file /srv/a(3)", 1)], [],
        ])
    func causes(_ written: [(String, Int)]) {
        let causes = written.map { RunCause($0.0, count: $0.1, first: now) }
        let expected = written.map { $0.0 == "file /srv/a (2)" ? ("file /srv/a", 2) : $0 }
        let read = [RunCause](summary: causes.summary, at: now)
        // Text that looks like a count is parsed as one: it is only for people.
        #expect(read.map(\.signal) == expected.map(\.0))
        #expect(read.map(\.count) == expected.map(\.1))
        #expect(read.allSatisfy { $0.first == now && $0.last == now })
    }

    @Test("has the mirror that it asked last")
    func mirror() {
        var record = record(started: 1, ended: 2)
        #expect(RunSummary(remembered: record, now: now, wallNow: 3).mirror == nil)
        record.mirror = "https://b.example/"
        #expect(RunSummary(remembered: record, now: now, wallNow: 3).mirror == "https://b.example/")
    }

    @Test("has the stored times of its causes, if there is one for each cause")
    func causeTimes() {
        var record = record(started: 5_000_000, ended: 5_250_000, causes: "network (2), timer")
        record.causeTimes = [
            CauseTimes(first: 1_000_000, last: 4_000_000), CauseTimes(first: 4_500_000, last: 4_500_000),
        ]
        let causes = RunSummary(remembered: record, now: now, wallNow: 65_000_000).causes
        #expect(causes.map(\.first) == [now - .seconds(64), now - .milliseconds(60_500)])
        #expect(causes.map(\.last) == [now - .seconds(61), now - .milliseconds(60_500)])
        record.causeTimes.removeLast()
        let others = RunSummary(remembered: record, now: now, wallNow: 65_000_000).causes
        #expect(others.allSatisfy { $0.first == now - .seconds(60) && $0.last == $0.first })
    }

    @Test("started as long ago as the wall clock says, but not in the future, with its duration")
    func times() {
        let summary = RunSummary(
            remembered: record(started: 5_000_000, ended: 5_250_000), now: now, wallNow: 65_000_000)
        #expect(summary.started == now - .seconds(60))
        #expect(summary.duration == .milliseconds(250))
        #expect(summary.run == 7 && summary.generation == 3 && summary.outcome == .changed)
        let later = RunSummary(remembered: record(started: 9_000_000, ended: 8_000_000), now: now, wallNow: 0)
        #expect(later.started == now && later.duration == .zero)
    }
}
