extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Delivers the elements of the latest of the inner sequences that this sequence delivers.
    ///
    /// ```
    /// upstream             --p-----q-----|
    /// p                      -a-b-c-d-|
    /// q                            -e--f---g-|
    /// switchToLatest()     ---a-b---e--f---g-|
    /// ```
    ///
    /// - **Switching.** An inner sequence is subscribed when it is delivered. From then on no element of the previous
    ///   inner sequence is delivered. The previous one is cancelled, and the first element of the new one is requested
    ///   when the previous one has ended, so only one runs at a time. A sequence that ignores cancellation delays the
    ///   next one. If several arrive in the meantime, only the latest runs.
    /// - **The end.** The end of an inner sequence does not end the result while the upstream continues. When the
    ///   upstream ends, the latest inner sequence can finish, then the result ends.
    /// - **Errors.** A failure of the upstream, or of the latest inner sequence, fails the result immediately. A
    ///   failure of a replaced inner sequence is ignored.
    /// - **Back-pressure.** The upstream is read continuously. One element of the latest inner sequence waits until the
    ///   consumer takes it.
    /// - **Cancellation.** A cancelled `next()` returns nil when the upstream and the inner sequence have ended.
    /// - **Cost.** One child task for the upstream, and one for each inner sequence that runs.
    public func switchToLatest<I: AsyncSequence & Sendable>() -> some AsyncSequence<I.Element, I.Failure> & Sendable
    where Element == I, I.Element: Sendable, Failure == I.Failure {
        SwitchToLatest(base: self, rethrowOuter: { $0 }, rethrowInner: { $0 })
    }

    /// Delivers the elements of the latest of the inner sequences that this sequence, which cannot fail, delivers.
    ///
    /// Like the first `switchToLatest()`.
    @_disfavoredOverload
    public func switchToLatest<I: AsyncSequence & Sendable>() -> some AsyncSequence<I.Element, I.Failure> & Sendable
    where Element == I, I.Element: Sendable, Failure == Never {
        SwitchToLatest(base: self, rethrowOuter: absurd, rethrowInner: { $0 })
    }

    /// Delivers the elements of the latest of the inner sequences, which cannot fail, that this sequence delivers.
    ///
    /// Like the first `switchToLatest()`.
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
                        // An upstream that never suspends must not keep the inner sequences from running.
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
