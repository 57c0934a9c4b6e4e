extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, tried again at an output of a signal whenever it has failed.
    ///
    /// ```
    /// 1st attempt        -a-x
    /// signal             ------s-s------
    /// 2nd attempt              -a-b-|
    /// retry(on: signal)  -a-----a-b-|
    /// ```
    ///
    /// **Meaning.** What an attempt emits is delivered as it comes. After a failure the next attempt begins at an output
    /// of the signal; all outputs since the failed attempt began count as one, so one that came before the failure
    /// tries again at once. An output does not disturb an attempt that goes on. An attempt's end is the end. Signal and
    /// upstream are subscribed when the iterator is made, which begins the first attempt: an output before the first
    /// `next()` counts, and so does a present value that the signal replays, once. The signal is subscribed once an
    /// iteration, the upstream once an attempt.
    ///
    /// **Errors.** Each failure is told to `onFailure`. If the signal has ended and no output is left, the last failure
    /// is thrown.
    ///
    /// **Cancellation.** `next()` returns nil when the attempt has ended. What it throws then is told to nobody.
    ///
    /// **Back-pressure.** An attempt runs ahead of the consumer by one element. The signal is read on and on, and only
    /// whether there was an output is kept.
    ///
    /// **Cost.** Two tasks an iteration.
    ///
    /// - Parameters:
    ///   - signal: Any sequence that cannot fail. What its output is does not matter.
    ///   - onFailure: Called with each failure and the number of the attempt, from 1, before the next one begins.
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
