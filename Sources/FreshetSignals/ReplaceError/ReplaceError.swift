extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence with a value in place of its failure.
    ///
    /// ```
    /// upstream               -a--b--x
    /// replaceError(with: r)  -a--b--(r|)
    /// ```
    ///
    /// As ``replaceError(_:)``, for a replacement that does not depend on the error.
    ///
    /// - Parameter value: What is emitted when the upstream fails.
    public func replaceError(with value: Element) -> some AsyncSequence<Element, Never> & Sendable {
        ReplaceError(base: self) { _ in value }
    }

    /// The sequence with a value that is computed from its failure in place of it.
    ///
    /// ```
    /// upstream                   -a--b--x
    /// replaceError { text($0) }  -a--b--(t|)
    /// ```
    ///
    /// **Meaning.** The elements as they are; if the upstream fails, the replacement, then the end. To try again, put
    /// ``retry(on:onFailure:)`` before it. The upstream is subscribed when the iterator is made and released when it
    /// has failed.
    ///
    /// **Errors.** None any more.
    ///
    /// **Cancellation.** An upstream that throws because it was cancelled is not replaced: `next()` returns nil.
    ///
    /// **Back-pressure.** One element is taken for each that is asked for.
    ///
    /// **Cost.** No task and no lock.
    ///
    /// - Parameter replacement: Called when the failure happens, in the task that asks, at most once an iteration.
    public func replaceError(
        _ replacement: @escaping @Sendable (Failure) -> Element
    ) -> some AsyncSequence<Element, Never> & Sendable {
        ReplaceError(base: self, replacement: replacement)
    }
}

private struct ReplaceError<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
    typealias Element = Base.Element
    typealias Failure = Never

    let base: Base
    let replacement: @Sendable (Base.Failure) -> Element

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), replacement: replacement)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        /// Nil once it has failed.
        var base: Base.AsyncIterator?
        let replacement: @Sendable (Base.Failure) -> Element

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Element? {
            do throws(Base.Failure) {
                return try await base?.next(isolation: isolation)
            } catch {
                base = nil
                return Task.isCancelled ? nil : replacement(error)
            }
        }
    }
}

@available(*, unavailable)
extension ReplaceError.AsyncIterator: Sendable {}
