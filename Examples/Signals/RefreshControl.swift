internal import FreshetSignals

/// Delivers each value of a stream, and the latest value again at each pull.
public struct RefreshControl: Sendable {
    let pulls = SignalSource("pull")

    public init() {}

    /// Requests the latest value again.
    public func pull() {
        pulls.fire()
    }

    /// The values of the stream, and the latest one again at each pull. A pull before the first value has no effect.
    public func shown<Values: AsyncSequence & Sendable>(
        _ values: Values
    ) -> some AsyncSequence<Values.Element, Values.Failure> & Sendable where Values.Element: Sendable {
        let shared = values.share(replaying: 1)
        let again = pulls.signal.coalesced().withLatestFrom(shared).map { $0.1 }
        return merge([Emitter(shared), Emitter(again)])
    }
}
