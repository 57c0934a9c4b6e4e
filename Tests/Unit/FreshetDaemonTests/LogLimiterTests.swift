import FreshetModel
import FreshetPipelines
import Logging
import Testing

@testable import FreshetDaemon

@Suite("The limiter for messages of many pipelines")
struct LogLimiterTests {
    private let log = LogRecorder()
    private let clock = FakeClock()

    private func end(_ outcome: RunOutcome, _ count: Int, on limiter: LogLimiter) -> Int {
        let run = BurstSummary.EndedRun(outcome: outcome == .failed ? .failed : .changed, isNew: true)
        return (0..<count).count { limiter.ended("p\($0)", summary(outcome, at: clock.now), run) }
    }

    @Test("no timer is armed while all messages are logged individually")
    func idle() {
        let limiter = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.changed, BurstSummary.limit, on: limiter) == BurstSummary.limit)
        #expect(clock.due == nil)
        limiter.finish()
        #expect(log.lines == [])
    }

    @Test("the timer logs the summary; it is armed once, and again while the burst continues")
    func byTimer() {
        let limiter = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.changed, 150, on: limiter) == BurstSummary.limit)
        let first = clock.due
        #expect(first == clock.now + BurstSummary.quiet)
        clock.advance(by: .seconds(3))
        #expect(end(.changed, 10, on: limiter) == 0)
        #expect(clock.due == first)
        clock.advance(by: .seconds(2))
        #expect(log.lines == [])
        #expect(clock.due == clock.now + .seconds(3))
        clock.advance(by: .seconds(3))
        #expect(
            log.lines == [
                LogRecorder.Line(
                    level: .info, message: "\(JournalMessage.summary.text)",
                    metadata: [
                        "message-id": JournalMessage.summary.rawValue, "signal": "network", "pipelines": "150",
                        "runs": "160", "changed": "150", "unchanged": "0", "failed": "0", "recovered": "0",
                    ])
            ])
        #expect(clock.due == nil)
    }

    @Test("suppressed failures make the summary a warning")
    func failures() {
        let limiter = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.failed, 101, on: limiter) == BurstSummary.limit)
        limiter.finish()
        #expect(log.lines.map(\.level) == [.warning])
    }

    @Test("errors beyond the limit are logged at debug, and their number as an error")
    func errors() {
        let limiter = LogLimiter(log: log.logger, clock: clock)
        for number in 0..<102 { limiter.log(.invalidPipeline, [.pipeline: .stringConvertible(number)]) }
        limiter.finish(.invalidPipeline)
        let lines = log.take()
        #expect(lines.map(\.level) == Array(repeating: .error, count: 100) + [.debug, .debug, .error])
        #expect(lines.last?.metadata["count"] == "2")
        #expect(lines.last?.metadata["message-id"] == JournalMessage.more.rawValue)
    }
}
