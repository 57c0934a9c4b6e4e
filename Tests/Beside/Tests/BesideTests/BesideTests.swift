import AsyncAlgorithms
import FreshetSignals
import FreshetTestKit
import Testing

/// Calls in a file that imports both modules. A call with an API that only Freshet has must be Freshet's: the result's
/// type shows it, and making an iterator subscribes, unlike in swift-async-algorithms.
@Suite("Beside swift-async-algorithms")
struct BesideTests {
    let source = SignalSource("s")
    let clock = ManualClock()

    func expectOurs<S: AsyncSequence & Sendable>(
        _ sequence: S, subscriptions: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(String(reflecting: type(of: sequence)).hasPrefix("FreshetSignals."), sourceLocation: sourceLocation)
        let iterator = sequence.makeAsyncIterator()
        #expect(source.fire() == subscriptions, sourceLocation: sourceLocation)
        withExtendedLifetime(iterator) {}
    }

    @Test("debounce with atMost is Freshet's, with and without a clock")
    func debounce() {
        let signal = source.signal
        expectOurs(signal.debounce(for: .seconds(1), atMost: nil))
        expectOurs(signal.debounce(for: .seconds(1), atMost: .seconds(5), leading: true))
        expectOurs(signal.debounce(for: .seconds(1), atMost: nil, clock: clock))
        expectOurs(signal.debounce(for: .seconds(1), atMost: nil, leading: true, clock: ContinuousClock()))
    }

    @Test("throttle with latest is Freshet's, with and without a clock")
    func throttle() {
        let signal = source.signal
        expectOurs(signal.throttle(for: .seconds(1), latest: true))
        expectOurs(signal.throttle(for: .seconds(1), latest: false, clock: clock))
    }

    @Test("merge of an array of sequences is Freshet's, and so is the merge of signals")
    func merged() {
        // A merge of signals alone is one subscription.
        expectOurs(merge([source.signal, source.signal]))
        expectOurs(merge([Emitter(source.signal), Emitter(source.signal)]), subscriptions: 2)
        expectOurs(Signal.merge(source.signal, source.signal))
        expectOurs(Signal.merge([source.signal, .never]))
    }

    @Test("combineLatest of Sendable sequences with one failure type is Freshet's")
    func combined() {
        expectOurs(combineLatest(source.signal, CurrentValue(1)))
        expectOurs(combineLatest(source.signal, source.signal, source.signal), subscriptions: 3)
    }

    @Test("operators that only Freshet has are Freshet's")
    func others() {
        let signal = source.signal
        let value = CurrentValue(1)
        expectOurs(signal.wait(untilOutputFrom: Signal.never), subscriptions: 0)
        expectOurs(signal.prepend(()))
        expectOurs(signal.scan(0) { count, _ in count + 1 })
        expectOurs(signal.replaceError(with: ()))
        expectOurs(signal.retry(on: Signal.never))
        expectOurs(signal.withLatestFrom(value))
        expectOurs(value.removeDuplicates(), subscriptions: 0)
        expectOurs(
            paginated(by: signal, first: { Page([1], next: 1) }, next: { Page([$0], next: nil) }))
        expectOurs(publishAndRepeat(onOutputFrom: signal) { Emitter<Int, Never>.once { 1 } })
        expectOurs(accumulateLatestMany([signal, signal]), subscriptions: 2)
    }

    @Test("operators of swift-async-algorithms can still be called")
    func theirs() {
        let numbers = [1, 2, 3].async
        #expect(String(reflecting: type(of: numbers)).hasPrefix("AsyncAlgorithms."))
        let chunks = numbers.chunks(ofCount: 2)
        #expect(String(reflecting: type(of: chunks)).hasPrefix("AsyncAlgorithms."))
        let debounced = source.signal.debounce(for: .seconds(1))
        #expect(String(reflecting: type(of: debounced)).hasPrefix("AsyncAlgorithms."))
    }
}
