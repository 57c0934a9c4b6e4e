extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Delivers each element together with the latest of another sequence.
    ///
    /// ```
    /// upstream                  --a---b-----c--d-|
    /// other                     ----1----2-----
    /// withLatestFrom(other)     ------p-----q--r-|
    ///                           p: b1, q: c2, r: d2
    /// ```
    ///
    /// - **Start.** Both are subscribed when the iterator is made. The other side is asked first and gets some turns to
    ///   deliver what is there, then the upstream is asked. Elements of the upstream before the other's first are
    ///   dropped. The other side alone delivers nothing.
    /// - **Which value.** The one that is the latest when the upstream's element is taken from it.
    /// - **The end.** The upstream's end is the result's. The other's end keeps its last value, or ends the result if
    ///   it had none.
    /// - **Errors.** A failure of either fails the result at once; a pair that nobody has taken is dropped.
    /// - **Back-pressure.** One pair waits to be taken; the upstream is read on when it was. The other side is always
    ///   read on, and only its latest is kept.
    /// - **Cancellation.** A cancelled `next()` returns nil when both have ended.
    /// - **Cost.** Two child tasks; two switches of tasks for each pair.
    public func withLatestFrom<O: AsyncSequence & Sendable>(
        _ other: O
    ) -> some AsyncSequence<(Element, O.Element), Failure> & Sendable
    where O.Element: Sendable, O.Failure == Failure {
        WithLatestFrom(base: self, other: other, rethrowBase: { $0 }, rethrowOther: { $0 })
    }

    /// Delivers each element together with the latest of another sequence, which cannot fail.
    ///
    /// As the first `withLatestFrom(_:)`.
    @_disfavoredOverload
    public func withLatestFrom<O: AsyncSequence & Sendable>(
        _ other: O
    ) -> some AsyncSequence<(Element, O.Element), Failure> & Sendable
    where O.Element: Sendable, O.Failure == Never {
        WithLatestFrom(base: self, other: other, rethrowBase: { $0 }, rethrowOther: absurd)
    }

    /// Delivers each element of a sequence that cannot fail together with the latest of another sequence.
    ///
    /// As the first `withLatestFrom(_:)`.
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
