extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// What has become of an initial result by each element.
    ///
    /// ```
    /// upstream     -1---2---3-|
    /// scan(0, +)   -1---3---6-|
    /// ```
    ///
    /// **Meaning.** One result per element, computed from the result before it. The initial result is not emitted; to
    /// show it, ``prepend(_:)`` it. Each iteration starts with the initial result. The upstream is subscribed when the
    /// iterator is made.
    ///
    /// **Errors.** Those of the upstream.
    ///
    /// **Cancellation.** As the upstream's: `next()` returns nil when the upstream's has returned.
    ///
    /// **Back-pressure.** One element is taken for each result that is asked for.
    ///
    /// **Cost.** No task and no lock; `next` runs in the task that asks.
    ///
    /// - Parameters:
    ///   - initial: The result before the first element.
    ///   - next: Makes the next result from the present one and an element.
    public func scan<R: Sendable>(
        _ initial: R, _ next: @escaping @Sendable (R, Element) -> R
    ) -> some AsyncSequence<R, Failure> & Sendable {
        Scan(base: self, initial: initial, update: next)
    }
}

private struct Scan<Base: AsyncSequence & Sendable, Element: Sendable>: AsyncSequence, Sendable {
    typealias Failure = Base.Failure

    let base: Base
    let initial: Element
    let update: @Sendable (Element, Base.Element) -> Element

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(result: initial, update: update, base: base.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var result: Element
        let update: @Sendable (Element, Base.Element) -> Element
        var base: Base.AsyncIterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            do throws(Failure) {
                guard let element = try await base.next(isolation: isolation) else { return nil }
                result = update(result, element)
                return result
            } catch {
                // A cancelled iteration ends; that it could not go on is no news.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Scan.AsyncIterator: Sendable {}
