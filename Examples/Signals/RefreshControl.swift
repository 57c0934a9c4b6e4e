internal import FreshetSignals

/// Shows each value of a stream when it comes, and the latest one again whenever somebody pulls.
public struct RefreshControl: Sendable {
    let pulls = SignalSource("pull")

    public init() {}

    /// Asks for the latest value once more.
    public func pull() {
        pulls.fire()
    }

    /// The stream, and its latest value again at each pull. A pull before the first value shows nothing.
    public func shown<Values: AsyncSequence & Sendable>(
        _ values: Values
    ) -> some AsyncSequence<Values.Element, Values.Failure> & Sendable where Values.Element: Sendable {
        let shared = values.share(replaying: 1)
        let again = pulls.signal.coalesced().withLatestFrom(shared).map { $0.1 }
        return merge([Emitter(shared), Emitter(again)])
    }
}
