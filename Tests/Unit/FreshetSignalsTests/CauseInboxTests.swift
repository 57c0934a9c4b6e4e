import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("An inbox of causes")
struct CauseInboxTests {
    let executor = SerialTestExecutor()

    /// The keys that one task takes from an inbox, in the groups in which it got them.
    private final class Taken: Sendable {
        let keys = Lock<[[CauseInbox.Key]]>([])
        let isOver = Lock(false)
        var all: [[CauseInbox.Key]] { keys.withLock { $0 } }
    }

    private func startTask(_ inbox: CauseInbox) -> (Taken, Task<Void, Never>) {
        let taken = Taken()
        let task = Task(executorPreference: executor) {
            while let keys = await inbox.next() { taken.keys.withLock { $0.append(keys) } }
            taken.isOver.withLock { $0 = true }
        }
        return (taken, task)
    }

    @Test("one task receives many signals, and takes the causes of each separately")
    func many() throws {
        let inbox = CauseInbox()
        let (a, b, c) = (SignalSource("a"), SignalSource("b"), SignalSource("c"))
        let first = inbox.subscribe(to: .merge(a.signal, b.signal), as: 1)
        let second = inbox.subscribe(to: .merge(b.signal, c.signal), as: 2)
        let (taken, task) = startTask(inbox)
        try executor.runUntilIdle()
        b.fire()
        a.fire()
        b.fire("again")
        try executor.runUntilIdle()
        #expect(taken.all == [[1, 2]])
        let causes = first.take()
        #expect(causes.map(\.first.signal) == ["b", "a"])
        #expect(causes.map(\.count) == [2, 1])
        #expect(causes.first?.last.detail == "again")
        #expect(second.take().map(\.first.signal) == ["b"])
        #expect(first.take() == [])
        c.fire()
        try executor.runUntilIdle()
        #expect(taken.all == [[1, 2], [2]])
        task.cancel()
        try executor.runUntilIdle()
    }

    @Test("a key is in the inbox once until its causes are taken, however often its sources fire")
    func bounded() throws {
        let inbox = CauseInbox()
        let source = SignalSource("a")
        let subscription = inbox.subscribe(to: .merge(source.signal, source.signal), as: 7)
        for _ in 0..<1000 { source.fire() }
        let (taken, task) = startTask(inbox)
        try executor.runUntilIdle()
        for _ in 0..<1000 { source.fire() }
        try executor.runUntilIdle()
        #expect(taken.all == [[7]])
        #expect(subscription.take().map(\.count) == [2000])
        task.cancel()
        try executor.runUntilIdle()
    }

    @Test("firings before the first next() are kept; firings before the subscription are not received")
    func early() throws {
        let inbox = CauseInbox()
        let source = SignalSource("a")
        source.fire()
        let subscription = inbox.subscribe(to: source.signal, as: 1)
        source.fire()
        let (taken, task) = startTask(inbox)
        try executor.runUntilIdle()
        #expect(taken.all == [[1]])
        #expect(subscription.take().first?.first.number == 2)
        task.cancel()
        try executor.runUntilIdle()
    }

    @Test("the subscription ends with its object")
    func ends() {
        let inbox = CauseInbox()
        let source = SignalSource("a")
        var subscription: CauseSubscription? = inbox.subscribe(to: source.signal, as: 1)
        #expect(source.fire() == 1)
        #expect(subscription?.take().count == 1)
        subscription = nil
        #expect(source.fire() == 0)
    }

    @Test("a source that finishes leaves pending firings, and other sources")
    func finished() {
        let inbox = CauseInbox()
        let (a, b) = (SignalSource("a"), SignalSource("b"))
        let subscription = inbox.subscribe(to: .merge(a.signal, b.signal), as: 1)
        a.fire()
        a.finish()
        b.fire()
        #expect(subscription.take().map(\.first.signal) == ["a", "b"])
    }

    @Test("an inbox can be woken without a signal, and cancellation ends the wait")
    func woken() throws {
        let inbox = CauseInbox()
        let (taken, task) = startTask(inbox)
        try executor.runUntilIdle()
        inbox.wake(3)
        inbox.wake(4)
        try executor.runUntilIdle()
        #expect(taken.all == [[3, 4]])
        #expect(!taken.isOver.withLock { $0 })
        task.cancel()
        try executor.runUntilIdle()
        #expect(taken.isOver.withLock { $0 })
    }
}
