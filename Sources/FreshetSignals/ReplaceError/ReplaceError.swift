extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence with a value in place of its failure.
    ///
    /// ```
    /// upstream               -a--b--x
    /// replaceError(with: r)  -a--b--(r|)
    /// ```
    ///
    /// Like ``replaceError(_:)``, for a replacement that does not depend on the error.
    ///
    /// - Parameter value: The element that is emitted when the upstream fails.
    public func replaceError(with value: Element) -> some AsyncSequence<Element, Never> & Sendable {
        ReplaceError(base: self) { _ in value }
    }

    /// The sequence with a value in place of its failure, computed from the failure.
    ///
    /// ```
    /// upstream                   -a--b--x
    /// replaceError { text($0) }  -a--b--(t|)
    /// ```
    ///
    /// **Meaning.** The elements are delivered unchanged. If the upstream fails, the replacement is delivered, then the
    /// result ends. To retry the upstream instead, apply ``retry(on:onFailure:)`` first. Making the iterator subscribes
    /// to the upstream, which is released when it has failed.
    ///
    /// **Errors.** The result cannot fail.
    ///
    /// **Cancellation.** If the upstream throws because it was cancelled, its error is not replaced: `next()` returns
    /// nil.
    ///
    /// **Back-pressure.** One element is taken for each request.
    ///
    /// **Cost.** No task and no lock.
    ///
    /// - Parameter replacement: Called when the upstream fails, in the task that calls `next()`, at most once in an
    ///   iteration.
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
        /// Nil after a failure.
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
