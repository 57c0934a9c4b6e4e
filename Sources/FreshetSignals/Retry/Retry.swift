extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, retried at an output of a signal whenever it has failed.
    ///
    /// ```
    /// 1st attempt        -a-x
    /// signal             ------s-s------
    /// 2nd attempt              -a-b-|
    /// retry(on: signal)  -a-----a-b-|
    /// ```
    ///
    /// **Meaning.** The elements of an attempt are delivered as they arrive. After a failure the next attempt begins at
    /// an output of the signal. All outputs since the start of the failed attempt count as one, so an output before the
    /// failure leads to an immediate retry. An output does not disturb an attempt in progress. If an attempt ends, the
    /// result ends. Making the iterator subscribes to the signal and to the upstream and begins the first attempt: an
    /// output before the first `next()` counts, and so does, once, a current value that the signal replays. There is
    /// one subscription to the signal for the iteration, and one to the upstream for each attempt.
    ///
    /// **Errors.** `onFailure` is called with each failure. If the signal has ended and no output is pending, the last
    /// failure is thrown.
    ///
    /// **Cancellation.** `next()` returns nil when the attempt has ended. Errors of that attempt are ignored.
    ///
    /// **Back-pressure.** An attempt is ahead of the consumer by one element. The signal is read continuously, and only
    /// the fact that there was an output is kept.
    ///
    /// **Cost.** Two tasks for each iteration.
    ///
    /// - Parameters:
    ///   - signal: Any sequence that cannot fail. Its elements are ignored.
    ///   - onFailure: Called with each failure and the number of the attempt, from 1, before the next attempt begins.
    public func retry<S: AsyncSequence & Sendable>(
        on signal: S, onFailure: (@Sendable (Failure, _ attempt: Int) -> Void)? = nil
    ) -> some AsyncSequence<Element, Failure> & Sendable where S.Failure == Never {
        Retry(base: self, signal: signal, onFailure: onFailure)
    }
}

private struct Retry<Base: AsyncSequence & Sendable, S: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable, S.Failure == Never {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let signal: S
    let onFailure: (@Sendable (Failure, Int) -> Void)?

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let storage = RetryStorage(base, on: signal, onFailure: onFailure)
        return DriverIterator { driver throws(Failure) in try await storage.operate(driver) }
    }
}
