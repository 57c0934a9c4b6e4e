extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Delivers each element together with the latest element of another sequence.
    ///
    /// ```
    /// upstream                  --a---b-----c--d-|
    /// other                     ----1----2-----
    /// withLatestFrom(other)     ------p-----q--r-|
    ///                           p: b1, q: c2, r: d2
    /// ```
    ///
    /// - **Start.** Making the iterator subscribes to both sequences. The other sequence is read first and gets some
    ///   time to deliver elements that are already available; then the upstream is read. Elements of the upstream
    ///   before the first element of the other sequence are dropped. Elements of the other sequence alone deliver
    ///   nothing.
    /// - **Which value.** Each pair has the value that is the latest when the upstream's element is received.
    /// - **The end.** The result ends with the upstream. When the other sequence ends, its last value is kept; if it
    ///   had none, the result ends.
    /// - **Errors.** If either sequence fails, the result fails immediately; a pair that the consumer has not taken is
    ///   dropped.
    /// - **Back-pressure.** One pair waits for the consumer; the next element of the upstream is requested after that.
    ///   The other sequence is read continuously, and only its latest element is kept.
    /// - **Cancellation.** A cancelled `next()` returns nil when both sequences have ended.
    /// - **Cost.** Two child tasks, and two task switches for each pair.
    public func withLatestFrom<O: AsyncSequence & Sendable>(
        _ other: O
    ) -> some AsyncSequence<(Element, O.Element), Failure> & Sendable
    where O.Element: Sendable, O.Failure == Failure {
        WithLatestFrom(base: self, other: other, rethrowBase: { $0 }, rethrowOther: { $0 })
    }

    /// Delivers each element together with the latest element of another sequence, which cannot fail.
    ///
    /// Like the first `withLatestFrom(_:)`.
    @_disfavoredOverload
    public func withLatestFrom<O: AsyncSequence & Sendable>(
        _ other: O
    ) -> some AsyncSequence<(Element, O.Element), Failure> & Sendable
    where O.Element: Sendable, O.Failure == Never {
        WithLatestFrom(base: self, other: other, rethrowBase: { $0 }, rethrowOther: absurd)
    }

    /// Delivers each element of a sequence that cannot fail together with the latest element of another sequence.
    ///
    /// Like the first `withLatestFrom(_:)`.
    @_disfavoredOverload
    public func withLatestFrom<O: AsyncSequence & Sendable>(
        _ other: O
    ) -> some AsyncSequence<(Element, O.Element), O.Failure> & Sendable
    where O.Element: Sendable, Failure == Never {
        WithLatestFrom(base: self, other: other, rethrowBase: absurd, rethrowOther: { $0 })
    }
}

private struct WithLatestFrom<Base: AsyncSequence & Sendable, Other: AsyncSequence & Sendable, Failure: Error>:
    AsyncSequence, Sendable
where Base.Element: Sendable, Other.Element: Sendable {
    typealias Element = (Base.Element, Other.Element)

    let base: Base
    let other: Other
    let rethrowBase: @Sendable (Base.Failure) -> Failure
    let rethrowOther: @Sendable (Other.Failure) -> Failure

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let otherIterator = UnsafeTransfer(other.makeAsyncIterator())
        let storage = WithLatestFromStorage<Base, Other, Failure>(
            UnsafeTransfer(base.makeAsyncIterator()), otherIterator, rethrowBase: rethrowBase,
            rethrowOther: rethrowOther)
        return DriverIterator { driver throws(Failure) in await storage.operate(driver) }
    }
}
