import FreshetPipelines
import Logging
import Testing

@testable import FreshetDaemon

@Suite("The desk for news of many pipelines")
struct LogLimiterTests {
    private let log = LogBook()
    private let clock = FakeClock()

    private func end(_ outcome: RunOutcome, _ count: Int, on desk: LogLimiter) -> Int {
        let news = BurstSummary.News(outcome: outcome == .failed ? .failed : .changed, isNews: true)
        return (0..<count).count { desk.ended("p\($0)", summary(outcome, at: clock.now), news) }
    }

    @Test("no timer is armed while all is told one by one")
    func idle() {
        let desk = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.changed, BurstSummary.limit, on: desk) == BurstSummary.limit)
        #expect(clock.due == nil)
        desk.finish()
        #expect(log.lines == [])
    }

    @Test("a summary comes by the timer, which is armed once and follows a wave that goes on")
    func byTimer() {
        let desk = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.changed, 150, on: desk) == BurstSummary.limit)
        let first = clock.due
        #expect(first == clock.now + BurstSummary.quiet)
        clock.advance(by: .seconds(3))
        #expect(end(.changed, 10, on: desk) == 0)
        #expect(clock.due == first)
        clock.advance(by: .seconds(2))
        #expect(log.lines == [])
        #expect(clock.due == clock.now + .seconds(3))
        clock.advance(by: .seconds(3))
        #expect(
            log.lines == [
                LogBook.Line(
                    level: .info, message: "\(JournalMessage.summary.text)",
                    metadata: [
                        "message-id": JournalMessage.summary.rawValue, "signal": "network", "pipelines": "150",
                        "runs": "160", "changed": "150", "unchanged": "0", "failed": "0", "recovered": "0",
                    ])
            ])
        #expect(clock.due == nil)
    }

    @Test("failures that were not told one by one make the summary a warning")
    func failures() {
        let desk = LogLimiter(log: log.logger, clock: clock)
        #expect(end(.failed, 101, on: desk) == BurstSummary.limit)
        desk.finish()
        #expect(log.lines.map(\.level) == [.warning])
    }

    @Test("faults beyond the limit are told to who debugs, and their number to all")
    func faults() {
        let desk = LogLimiter(log: log.logger, clock: clock)
        for number in 0..<102 { desk.say(.faultyPipeline, [.pipeline: .stringConvertible(number)]) }
        desk.finish(.faultyPipeline)
        let lines = log.take()
        #expect(lines.map(\.level) == Array(repeating: .error, count: 100) + [.debug, .debug, .error])
        #expect(lines.last?.metadata["count"] == "2")
        #expect(lines.last?.metadata["message-id"] == JournalMessage.more.rawValue)
    }
}
