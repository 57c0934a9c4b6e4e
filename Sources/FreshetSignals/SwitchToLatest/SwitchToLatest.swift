extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Delivers the elements of the latest of the sequences that this one delivers.
    ///
    /// ```
    /// upstream             --p-----q-----|
    /// p                      -a-b-c-d-|
    /// q                            -e--f---g-|
    /// switchToLatest()     ---a-b---e--f---g-|
    /// ```
    ///
    /// - **Switching.** A sequence is subscribed when it is delivered. From then on nothing of the one before it is
    ///   delivered: that is cancelled, and the new one is asked when it has ended, so that one at a time runs. A
    ///   sequence that ignores cancellation delays the next; of those that come meanwhile only the latest runs.
    /// - **The end.** The end of an inner sequence does not end the result while the upstream lives; the upstream's end
    ///   lets the latest finish.
    /// - **Errors.** A failure of the upstream fails the result at once, one of the latest inner sequence when it
    ///   comes. One that was replaced has nothing to say any more.
    /// - **Back-pressure.** The upstream is always read on. Of the latest sequence one element waits to be taken.
    /// - **Cancellation.** A cancelled `next()` returns nil when the upstream and the inner sequence have ended.
    /// - **Cost.** A child task for the upstream, one for each sequence that runs.
    public func switchToLatest<I: AsyncSequence & Sendable>() -> some AsyncSequence<I.Element, I.Failure> & Sendable
    where Element == I, I.Element: Sendable, Failure == I.Failure {
        SwitchToLatest(base: self, rethrowOuter: { $0 }, rethrowInner: { $0 })
    }

    /// Delivers the elements of the latest of the sequences that this one, which cannot fail, delivers.
    ///
    /// As the first `switchToLatest()`.
    @_disfavoredOverload
    public func switchToLatest<I: AsyncSequence & Sendable>() -> some AsyncSequence<I.Element, I.Failure> & Sendable
    where Element == I, I.Element: Sendable, Failure == Never {
        SwitchToLatest(base: self, rethrowOuter: absurd, rethrowInner: { $0 })
    }

    /// Delivers the elements of the latest of the sequences that this one delivers, and that cannot fail.
    ///
    /// As the first `switchToLatest()`.
    @_disfavoredOverload
    public func switchToLatest<I: AsyncSequence & Sendable>() -> some AsyncSequence<I.Element, Failure> & Sendable
    where Element == I, I.Element: Sendable, I.Failure == Never {
        SwitchToLatest(base: self, rethrowOuter: { $0 }, rethrowInner: absurd)
    }
}

private struct SwitchToLatest<Base: AsyncSequence & Sendable, Failure: Error>: AsyncSequence, Sendable
where Base.Element: AsyncSequence & Sendable, Base.Element.Element: Sendable {
    typealias Inner = Base.Element
    typealias Element = Inner.Element

    let base: Base
    let rethrowOuter: @Sendable (Base.Failure) -> Failure
    let rethrowInner: @Sendable (Inner.Failure) -> Failure

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let outer = UnsafeTransfer(base.makeAsyncIterator())
        let runs = LatestRuns<UnsafeTransfer<Inner.AsyncIterator>, Element, Failure>()
        return DriverIterator { [rethrowOuter, rethrowInner] driver throws(Failure) in
            try await runs.operate(
                driver,
                watch: {
                    _ = await driver.exhaust(outer, rethrowing: rethrowOuter) { inner in
                        runs.output(UnsafeTransfer(inner.makeAsyncIterator()), of: driver)
                        // An upstream that never suspends must not keep what it delivers from running.
                        await Task.yield()
                        return !Task.isCancelled
                    }
                    runs.noMoreOutputs()
                },
                run: { (inner, round) throws(Failure) in
                    guard var elements = inner.open() else { return }
                    do throws(Inner.Failure) {
                        try await elements.exhaust { await driver.offer($0, in: round) }
                    } catch {
                        throw rethrowInner(error)
                    }
                })
        }
    }
}
