import Testing

@testable import FreshetDaemon

@Suite("Waves of news")
struct BurstSummaryTests {
    private static let start = ContinuousClock.now
    private static let limit = BurstSummary.limit

    private func at(_ seconds: Double) -> ContinuousClock.Instant {
        Self.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    private static let changed = BurstSummary.News(outcome: .changed, isNews: true)
    private static let unchanged = BurstSummary.News(outcome: .unchanged, isNews: false)
    private static let recovered = BurstSummary.News(outcome: .unchanged, isRecovery: true, isNews: true)
    private static let failed = BurstSummary.News(outcome: .failed, isNews: true)
    private static let failedAgain = BurstSummary.News(outcome: .failed, isNews: false)

    /// How many of so many pipelines are told one by one. All of it happens at one instant.
    private func tell(
        _ waves: inout BurstSummary, _ count: Int, _ news: BurstSummary.News, by signal: String = "reload",
        from: Int = 0,
        at seconds: Double = 0
    ) -> Int {
        (from..<from + count).count { waves.ended("p\($0)", by: signal, news, at: at(seconds)).tell }
    }

    @Test("up to the limit all is told, and there is no summary")
    func small() {
        var waves = BurstSummary()
        #expect(tell(&waves, Self.limit, Self.changed) == Self.limit)
        #expect(waves.due == nil)
        #expect(waves.elapsed(at: at(1_000)) == [])
        #expect(waves.finish() == [])
    }

    @Test("one more than the limit is a summary of all, when nothing more came for a while")
    func large() {
        var waves = BurstSummary()
        #expect(tell(&waves, Self.limit + 1, Self.changed) == Self.limit)
        #expect(waves.due == at(5))
        #expect(waves.elapsed(at: at(4.999)) == [])
        let runs = BurstSummary.Runs(runs: 101, changed: 101, passedOver: 1)
        #expect(waves.elapsed(at: at(5)) == [.runs(signal: "reload", runs)])
        #expect(waves.due == nil)
        #expect(waves.elapsed(at: at(100)) == [])
    }

    @Test("ten thousand pipelines of which one fails: its failure is told by itself, whenever it comes")
    func oneFailure() {
        var waves = BurstSummary()
        #expect(tell(&waves, 9_998, Self.changed) == Self.limit)
        #expect(tell(&waves, 1, Self.unchanged, from: 9_998) == 0)
        #expect(tell(&waves, 1, Self.failed, from: 9_999) == 1)
        let runs = BurstSummary.Runs(
            runs: 10_000, changed: 9_998, unchanged: 1, failed: 1, passedOver: 9_898, failuresPassedOver: 0)
        #expect(waves.finish() == [.runs(signal: "reload", runs)])
        #expect(runs.pipelines == 10_000)
    }

    @Test("ten thousand failures are as many lines as the limit and a summary; what fails again is no more of them")
    func allFail() {
        var waves = BurstSummary()
        #expect(tell(&waves, 10_000, Self.failed) == Self.limit)
        #expect(tell(&waves, 5_000, Self.failedAgain, at: 1) == 0)
        let runs = BurstSummary.Runs(runs: 15_000, failed: 10_000, passedOver: 9_900, failuresPassedOver: 9_900)
        #expect(waves.elapsed(at: at(6)) == [.runs(signal: "reload", runs)])
    }

    @Test("ten thousand recoveries are counted as such, and by what came of the runs")
    func recoveries() {
        var waves = BurstSummary()
        #expect(tell(&waves, 10_000, Self.recovered) == Self.limit)
        let runs = BurstSummary.Runs(runs: 10_000, unchanged: 10_000, recovered: 10_000, passedOver: 9_900)
        #expect(waves.finish() == [.runs(signal: "reload", runs)])
    }

    @Test("a pipeline counts once, by its last run; that it changed is not undone by a check that found nothing new")
    func lastOutcome() {
        var waves = BurstSummary()
        _ = tell(&waves, 101, Self.failed)
        _ = tell(&waves, 50, Self.changed)
        _ = tell(&waves, 25, Self.unchanged)
        _ = tell(&waves, 1, Self.failed, from: 49)
        let runs = BurstSummary.Runs(
            runs: 177, changed: 49, unchanged: 0, failed: 52, passedOver: 2, failuresPassedOver: 2)
        #expect(waves.finish() == [.runs(signal: "reload", runs)])
    }

    @Test("a wave goes on as long as something comes of it, and is cut where it does not end")
    func lasting() {
        var waves = BurstSummary()
        #expect(tell(&waves, 200, Self.changed) == Self.limit)
        for second in stride(from: 4.0, through: 56, by: 4) {
            #expect(tell(&waves, 1, Self.changed, at: second) == 0)
            #expect(waves.elapsed(at: at(second + 3.9)) == [])
        }
        #expect(waves.due == at(60))
        // What comes after it is the next one's, and so is the limit.
        let next = waves.ended("p0", by: "reload", Self.changed, at: at(60))
        #expect(next.tell)
        #expect(next.summary == .runs(signal: "reload", BurstSummary.Runs(runs: 214, changed: 200, passedOver: 114)))
        #expect(waves.due == nil)
    }

    @Test("the waves of two signals are apart, and each has its summary")
    func apart() {
        var waves = BurstSummary()
        #expect(tell(&waves, 150, Self.changed, by: "timer") == Self.limit)
        #expect(tell(&waves, 150, Self.changed, by: "network", at: 1) == Self.limit)
        #expect(waves.due == at(5))
        #expect(waves.elapsed(at: at(5)).count == 1)
        #expect(waves.due == at(6))
        #expect(waves.finish().count == 1)
    }

    @Test("that nothing was new is summed up too, so that somebody who debugs sees it")
    func quiet() {
        var waves = BurstSummary()
        #expect(tell(&waves, 101, Self.unchanged) == 0)
        let runs = BurstSummary.Runs(runs: 101, unchanged: 101)
        #expect(waves.elapsed(at: at(5)) == [.runs(signal: "reload", runs)])
    }

    @Test("of messages of one kind the first are told, and how many more there were when all is said")
    func messages() {
        var waves = BurstSummary()
        func said(_ count: Int, at seconds: Double = 0) -> Int {
            (0..<count).count { _ in waves.said(.faultyPipeline, at: at(seconds)).tell }
        }
        #expect(said(100) == 100)
        let none = waves.finish(.faultyPipeline)
        #expect(none == nil)
        #expect(said(10_000) == 100)
        let more = waves.finish(.faultyPipeline)
        #expect(more == .more(.faultyPipeline, count: 9_900))
        // Without an end that somebody knows, it is over after a while as any other.
        #expect(said(101, at: 9) == 100)
        #expect(waves.due == at(14))
        #expect(waves.elapsed(at: at(14)) == [.more(.faultyPipeline, count: 1)])
    }

    /// The most lines in half a minute, whatever happens: all signals, and each brings as much as it can.
    @Test("all signals at once stay below what journald takes")
    func bound() {
        var waves = BurstSummary()
        let signals = ["start", "network", "resume", "reload", "foreground", "operator", "timer"]
        var lines = 0
        for tenth in 0..<300 {
            let now = at(Double(tenth) / 10)
            for signal in signals {
                for number in 0..<100 {
                    for news in [Self.changed, Self.failed] {
                        let (tell, summary) = waves.ended("p\(number)", by: signal, news, at: now)
                        lines += (tell ? 1 : 0) + (summary == nil ? 0 : 1)
                    }
                }
            }
            lines += waves.elapsed(at: now).count
        }
        #expect(lines == signals.count * 200)
    }
}
