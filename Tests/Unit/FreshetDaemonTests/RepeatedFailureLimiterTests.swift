import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("The limiter for repeated failures")
struct RepeatedFailureLimiterTests {
    private static let start = BootInstant.now

    private func at(_ seconds: Double) -> BootInstant {
        Self.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    @Test("the first failure is logged, then one per hour with the number of suppressed ones")
    func hourly() {
        var limiter = RepeatedFailureLimiter()
        func failed(_ seconds: Double) -> RepeatedFailureLimiter.Decision { limiter.failed(at: at(seconds)) }
        #expect(!limiter.isFailing)
        #expect(failed(0) == .log(suppressed: 0))
        #expect(limiter.isFailing)
        for second in 1...10 { #expect(failed(Double(second)) == .suppress) }
        #expect(failed(3_599.999) == .suppress)
        #expect(failed(3_600) == .log(suppressed: 11))
        #expect(failed(3_601) == .suppress)
        #expect(failed(10_000) == .log(suppressed: 1))
    }

    @Test("the recovery is logged once, and the next failure counts as the first again")
    func recovery() {
        var limiter = RepeatedFailureLimiter()
        func failed(_ seconds: Double) -> RepeatedFailureLimiter.Decision { limiter.failed(at: at(seconds)) }
        func succeeded() -> Bool { limiter.succeeded() }
        #expect(!succeeded())
        #expect(failed(0) == .log(suppressed: 0))
        #expect(failed(1) == .suppress)
        #expect(succeeded())
        #expect(!succeeded())
        #expect(failed(2) == .log(suppressed: 0))
    }
}
