import Testing

@testable import FreshetEventLoop

@Suite("The limit of a call")
struct CallLimitTests {
    private final class Transfer {}

    /// A clock that a test sets.
    private final class Clock {
        var now: Duration = .seconds(5)
    }

    private let clock = Clock()
    private let limit: CallLimit
    private let transfer = Transfer()

    init() {
        limit = CallLimit { [clock] in clock.now }
    }

    /// Makes the steps of one check.
    private func exceeds(_ transfer: Transfer) -> Bool {
        var isExceeded = false
        for _ in 0..<CallLimit.stepsBetweenChecks where limit.isExceeded(by: transfer) { isExceeded = true }
        return isExceeded
    }

    @Test("a transfer with many steps in a long call exceeds the limit")
    func manySteps() {
        limit.beginCall()
        #expect(!exceeds(transfer))
        clock.now += CallLimit.longest
        #expect(!exceeds(transfer))
        clock.now += .nanoseconds(1)
        #expect(exceeds(transfer))
    }

    @Test("a transfer with few steps does not exceed the limit, however long they take")
    func fewSteps() {
        limit.beginCall()
        for _ in 0..<(CallLimit.stepsBetweenChecks * 2 - 1) {
            clock.now += .seconds(1)
            #expect(!limit.isExceeded(by: transfer))
        }
    }

    @Test("each call has the whole limit")
    func calls() {
        for _ in 0..<10 {
            limit.beginCall()
            #expect(!exceeds(transfer))
            clock.now += CallLimit.longest
            #expect(!exceeds(transfer))
        }
    }

    @Test("a transfer does not exceed the limit because of another transfer in the same call")
    func otherTransfer() {
        limit.beginCall()
        #expect(!exceeds(transfer))
        clock.now += .seconds(1)
        #expect(exceeds(transfer))
        let other = Transfer()
        #expect(!exceeds(other))
        #expect(!exceeds(other))
    }
}
