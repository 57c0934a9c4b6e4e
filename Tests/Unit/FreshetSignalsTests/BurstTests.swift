import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("A hundred thousand firings")
struct BurstTests {
    @Test("of one source arrive in their order, each counted once, however they are taken")
    func order() async throws {
        let executor = SerialTestExecutor()
        try executor.run {
            let source = SignalSource("kernel")
            let inbox = CauseInbox()
            let subscription = inbox.subscribe(to: source.signal, as: 1)
            var last: UInt64 = 0
            var taken = 0
            var turn = 0
            while last < 100_000 {
                turn += 1
                // Some at a time, from none to hundreds.
                for _ in 0..<(turn * 37 % 401) { source.fire("change") }
                for cause in subscription.take() {
                    #expect(cause.first.number == last + 1)
                    #expect(cause.count == Int(cause.last.number - last))
                    last = cause.last.number
                    taken += cause.count
                }
            }
            #expect(taken == Int(last))
        }
    }

    @Test("of many sources that are not taken are a count each: one key waits, and one job")
    func nobodyTakes() throws {
        let executor = SerialTestExecutor()
        let sources = (0..<10).map { SignalSource("source \($0)") }
        let inbox = CauseInbox()
        let subscription = inbox.subscribe(to: .merge(sources.map(\.signal)), as: 7)
        let keys = Lock<[CauseInbox.Key]>([])
        let task = Task(executorPreference: executor) {
            while let some = await inbox.next() { keys.withLock { $0 += some } }
        }
        try executor.runUntilIdle()
        for number in 0..<100_000 { sources[number % 10].fire("change \(number)") }
        // Jobs to wake the task and to let it check again: not one for each firing.
        #expect(try executor.runUntilIdle() <= 4)
        #expect(keys.withLock { $0 } == [7])
        let causes = subscription.take()
        #expect(causes.map(\.count) == Array(repeating: 10_000, count: 10))
        #expect(causes.map(\.first.signal) == (0..<10).map { "source \($0)" })
        #expect(causes.map(\.last.detail) == (0..<10).map { "change \(99_990 + $0)" })
        task.cancel()
        try executor.runUntilIdle()
    }
}
