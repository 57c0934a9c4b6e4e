import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("Burst summaries")
struct BurstSummaryTests {
    private static let start = BootInstant.now
    private static let limit = BurstSummary.limit

    private func at(_ seconds: Double) -> BootInstant {
        Self.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    private static let changed = BurstSummary.EndedRun(outcome: .changed, isNew: true)
    private static let unchanged = BurstSummary.EndedRun(outcome: .unchanged, isNew: false)
    private static let recovered = BurstSummary.EndedRun(outcome: .unchanged, isRecovery: true, isNew: true)
    private static let failed = BurstSummary.EndedRun(outcome: .failed, isNew: true)
    private static let failedAgain = BurstSummary.EndedRun(outcome: .failed, isNew: false)

    /// How many of `count` runs are logged individually. All runs end at the same instant.
    private func logs(
        _ bursts: inout BurstSummary, _ count: Int, _ run: BurstSummary.EndedRun, by signal: String = "reload",
        from: Int = 0,
        at seconds: Double = 0
    ) -> Int {
        (from..<from + count).count { bursts.ended("p\($0)", by: signal, run, at: at(seconds)).logs }
    }

    @Test("up to the limit, all runs are logged individually and there is no summary")
    func small() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, Self.limit, Self.changed) == Self.limit)
        #expect(bursts.due == nil)
        #expect(bursts.elapsed(at: at(1_000)) == [])
        #expect(bursts.finish() == [])
    }

    @Test("one run more than the limit causes a summary of all runs after the quiet period")
    func large() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, Self.limit + 1, Self.changed) == Self.limit)
        #expect(bursts.due == at(5))
        #expect(bursts.elapsed(at: at(4.999)) == [])
        let runs = BurstSummary.Runs(runs: 101, changed: 101, suppressed: 1)
        #expect(bursts.elapsed(at: at(5)) == [.runs(signal: "reload", runs)])
        #expect(bursts.due == nil)
        #expect(bursts.elapsed(at: at(100)) == [])
    }

    @Test("one failure among ten thousand pipelines is logged individually")
    func oneFailure() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 9_998, Self.changed) == Self.limit)
        #expect(logs(&bursts, 1, Self.unchanged, from: 9_998) == 0)
        #expect(logs(&bursts, 1, Self.failed, from: 9_999) == 1)
        let runs = BurstSummary.Runs(
            runs: 10_000, changed: 9_998, unchanged: 1, failed: 1, suppressed: 9_898, suppressedFailures: 0)
        #expect(bursts.finish() == [.runs(signal: "reload", runs)])
        #expect(runs.pipelines == 10_000)
    }

    @Test("ten thousand failures cause as many lines as the limit, and a summary; repeated failures add no lines")
    func allFail() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 10_000, Self.failed) == Self.limit)
        #expect(logs(&bursts, 5_000, Self.failedAgain, at: 1) == 0)
        let runs = BurstSummary.Runs(runs: 15_000, failed: 10_000, suppressed: 9_900, suppressedFailures: 9_900)
        #expect(bursts.elapsed(at: at(6)) == [.runs(signal: "reload", runs)])
    }

    @Test("ten thousand recoveries are counted as recoveries and by the outcomes of their runs")
    func recoveries() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 10_000, Self.recovered) == Self.limit)
        let runs = BurstSummary.Runs(runs: 10_000, unchanged: 10_000, recovered: 10_000, suppressed: 9_900)
        #expect(bursts.finish() == [.runs(signal: "reload", runs)])
    }

    @Test("a pipeline counts once, by its last run; an unchanged run after a change leaves it counted as changed")
    func lastOutcome() {
        var bursts = BurstSummary()
        _ = logs(&bursts, 101, Self.failed)
        _ = logs(&bursts, 50, Self.changed)
        _ = logs(&bursts, 25, Self.unchanged)
        _ = logs(&bursts, 1, Self.failed, from: 49)
        let runs = BurstSummary.Runs(
            runs: 177, changed: 49, unchanged: 0, failed: 52, suppressed: 2, suppressedFailures: 2)
        #expect(bursts.finish() == [.runs(signal: "reload", runs)])
    }

    @Test("a burst continues as long as events follow, and is split if it does not end")
    func lasting() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 200, Self.changed) == Self.limit)
        for second in stride(from: 4.0, through: 56, by: 4) {
            #expect(logs(&bursts, 1, Self.changed, at: second) == 0)
            #expect(bursts.elapsed(at: at(second + 3.9)) == [])
        }
        #expect(bursts.due == at(60))
        // The next event begins a new burst with its own limit.
        let next = bursts.ended("p0", by: "reload", Self.changed, at: at(60))
        #expect(next.logs)
        #expect(next.summary == .runs(signal: "reload", BurstSummary.Runs(runs: 214, changed: 200, suppressed: 114)))
        #expect(bursts.due == nil)
    }

    @Test("two signals have separate bursts with separate summaries")
    func apart() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 150, Self.changed, by: "timer") == Self.limit)
        #expect(logs(&bursts, 150, Self.changed, by: "network", at: 1) == Self.limit)
        #expect(bursts.due == at(5))
        #expect(bursts.elapsed(at: at(5)).count == 1)
        #expect(bursts.due == at(6))
        #expect(bursts.finish().count == 1)
    }

    @Test("unchanged runs have a summary too, for debugging")
    func quiet() {
        var bursts = BurstSummary()
        #expect(logs(&bursts, 101, Self.unchanged) == 0)
        let runs = BurstSummary.Runs(runs: 101, unchanged: 101)
        #expect(bursts.elapsed(at: at(5)) == [.runs(signal: "reload", runs)])
    }

    @Test("the first messages of one kind are logged, and the number of further ones when the burst is finished")
    func messages() {
        var bursts = BurstSummary()
        func logged(_ count: Int, at seconds: Double = 0) -> Int {
            (0..<count).count { _ in bursts.logged(.invalidPipeline, at: at(seconds)).logs }
        }
        #expect(logged(100) == 100)
        let none = bursts.finish(.invalidPipeline, at: at(0))
        #expect(none == nil)
        #expect(logged(10_000) == 100)
        let more = bursts.finish(.invalidPipeline, at: at(0))
        #expect(more == .more(.invalidPipeline, count: 9_900))
        // Without a call of `finish`, the burst ends after the quiet period.
        #expect(logged(101, at: 9) == 100)
        #expect(bursts.due == at(14))
        #expect(bursts.elapsed(at: at(14)) == [.more(.invalidPipeline, count: 1)])
    }

    @Test("a burst of messages can be finished ten times in a minute; after that, further calls do not end it")
    func finishes() {
        var bursts = BurstSummary()
        var lines = 0
        for _ in 0..<10_000 {
            for _ in 0..<200 where bursts.logged(.configurationError, at: at(0)).logs { lines += 1 }
            if bursts.finish(.configurationError, at: at(0)) != nil { lines += 1 }
        }
        #expect(lines == BurstSummary.maxFinishes * 101 + 100)
        #expect(bursts.elapsed(at: at(5)) == [.more(.configurationError, count: 9_990 * 200 - 100)])
        #expect(bursts.logged(.configurationError, at: at(60)).logs)
        #expect(bursts.finish(.configurationError, at: at(60)) == nil, "there was nothing more")
    }

    @Test("messages about dropped lines of programs are counted separately from the lines")
    func parts() {
        var bursts = BurstSummary()
        #expect((0..<101).count { _ in bursts.logged(.hookOutput, at: at(0)).logs } == 100)
        #expect((0..<101).count { _ in bursts.logged(.hookOutput, .linesLeftOut, at: at(0)).logs } == 100)
        #expect(bursts.finish() == [.more(.hookOutput, count: 1), .more(.hookOutput, count: 1)])
    }

    /// The maximum number of lines in half a minute: every signal causes as many runs as it can.
    @Test("the lines of all signals together stay below the rate limit of journald")
    func bound() {
        var bursts = BurstSummary()
        let signals = ["start", "network", "resume", "reload", "foreground", "operator", "timer"]
        var lines = 0
        for tenth in 0..<300 {
            let now = at(Double(tenth) / 10)
            for signal in signals {
                for number in 0..<100 {
                    for run in [Self.changed, Self.failed] {
                        let (logs, summary) = bursts.ended("p\(number)", by: signal, run, at: now)
                        lines += (logs ? 1 : 0) + (summary == nil ? 0 : 1)
                    }
                }
            }
            lines += bursts.elapsed(at: now).count
        }
        #expect(lines == signals.count * 200)
    }
}
