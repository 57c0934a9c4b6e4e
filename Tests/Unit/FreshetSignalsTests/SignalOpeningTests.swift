import Synchronization
import Testing

@testable import FreshetSignals

/// A source that subscribers open, with the number of openings.
private final class Tap: Sendable {
    final class Lease: Sendable {
        let onEnd: @Sendable () -> Void
        init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
        deinit { onEnd() }
    }

    let source = SignalSource("tap")
    private let state = Mutex((opened: 0, open: 0))

    var opened: Int { state.withLock { $0.opened } }
    var open: Int { state.withLock { $0.open } }

    var signal: Signal {
        Signal(opening: { [self] in
            state.withLock {
                $0.opened += 1
                $0.open += 1
            }
            let lease = Lease { [self] in state.withLock { $0.open -= 1 } }
            return Signal.Opened(source.signal, keeping: lease)
        })
    }
}

@Suite("A signal that is opened by its subscribers")
struct SignalOpeningTests {
    @Test("is opened by an iterator, before its first next(), and closed with its last copy")
    func life() async {
        let tap = Tap()
        let signal = tap.signal
        #expect(tap.opened == 0)
        do {
            var one = signal.makeAsyncIterator()
            #expect(tap.open == 1)
            #expect(tap.source.fire() == 1)
            let copy = one
            #expect(await one.next(isolation: nil) != nil)
            withExtendedLifetime(copy) {}
            let other = signal.coalesced().makeAsyncIterator()
            #expect(tap.open == 2)
            withExtendedLifetime((one, other)) {}
        }
        #expect(tap.open == 0 && tap.opened == 2)
        #expect(tap.source.fire() == 0)
    }

    @Test("can be merged with others and with itself, and is one source then")
    func merged() async {
        let tap = Tap()
        let plain = SignalSource("plain")
        let merged = Signal.merge(plain.signal, Signal.merge(tap.signal, tap.signal))
        #expect(tap.opened == 0)
        do {
            var causes = merged.causes.makeAsyncIterator()
            var firings = merged.makeAsyncIterator()
            tap.source.fire("a")
            plain.fire("b")
            tap.source.fire("c")
            let pending = await causes.next(isolation: nil)
            #expect(pending?.map(\.first.signal) == ["tap", "plain"])
            #expect(pending?.first?.count == 2 && pending?.first?.last.detail == "c")
            // Listed twice, it counts twice.
            for _ in 0..<5 { #expect(await firings.next(isolation: nil) != nil) }
        }
        #expect(tap.open == 0 && tap.opened == 4)
    }

    @Test("may open another signal of that kind")
    func nested() async {
        let tap = Tap()
        let outer = Signal(opening: { Signal.Opened(tap.signal, keeping: ()) })
        do {
            var iterator = outer.makeAsyncIterator()
            #expect(tap.open == 1)
            tap.source.fire()
            #expect(await iterator.next(isolation: nil) != nil)
        }
        #expect(tap.open == 0)
    }

    @Test("can be subscribed to by an inbox, and is closed when that subscription ends")
    func inbox() async {
        let tap = Tap()
        let inbox = CauseInbox()
        do {
            let subscription = inbox.subscribe(to: tap.signal, as: 7)
            #expect(tap.open == 1)
            tap.source.fire("a")
            #expect(await inbox.next(isolation: nil) == [7])
            #expect(subscription.take().first?.first.detail == "a")
        }
        #expect(tap.open == 0)
    }

    @Test("ends when the opened source has ended")
    func end() async {
        let tap = Tap()
        var iterator = tap.signal.makeAsyncIterator()
        tap.source.finish()
        #expect(await iterator.next(isolation: nil) == nil)
    }
}
