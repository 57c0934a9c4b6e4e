import Testing

@testable import FreshetDaemon

@Suite("News of failures")
struct RepeatedFailureLimiterTests {
    private static let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant {
        Self.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    @Test("the first is news, then one an hour with how many were passed over")
    func hourly() {
        var news = RepeatedFailureLimiter()
        func failed(_ seconds: Double) -> RepeatedFailureLimiter.Decision { news.failed(at: at(seconds)) }
        #expect(!news.isFailing)
        #expect(failed(0) == .say(passedOver: 0))
        #expect(news.isFailing)
        for second in 1...10 { #expect(failed(Double(second)) == .passOver) }
        #expect(failed(3_599.999) == .passOver)
        #expect(failed(3_600) == .say(passedOver: 11))
        #expect(failed(3_601) == .passOver)
        #expect(failed(10_000) == .say(passedOver: 1))
    }

    @Test("the end of it is news once, and the next failure is the first again")
    func recovery() {
        var news = RepeatedFailureLimiter()
        func failed(_ seconds: Double) -> RepeatedFailureLimiter.Decision { news.failed(at: at(seconds)) }
        func succeeded() -> Bool { news.succeeded() }
        #expect(!succeeded())
        #expect(failed(0) == .say(passedOver: 0))
        #expect(failed(1) == .passOver)
        #expect(succeeded())
        #expect(!succeeded())
        #expect(failed(2) == .say(passedOver: 0))
    }
}
