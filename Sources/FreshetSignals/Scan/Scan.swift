extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Combines each element with the result so far, and delivers each new result.
    ///
    /// ```
    /// upstream     -1---2---3-|
    /// scan(0, +)   -1---3---6-|
    /// ```
    ///
    /// **Meaning.** There is one result for each element, computed from the previous result. The initial result is not
    /// delivered; use ``prepend(_:)`` to deliver it. Each iteration starts with the initial result. Making the iterator
    /// subscribes to the upstream.
    ///
    /// **Errors.** The upstream's.
    ///
    /// **Cancellation.** `next()` returns nil when the upstream's `next()` has returned.
    ///
    /// **Back-pressure.** One element is taken for each request.
    ///
    /// **Cost.** No task and no lock; `next` runs in the task that requests the element.
    ///
    /// - Parameters:
    ///   - initial: The result before the first element.
    ///   - next: Makes the next result from the current one and an element.
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
                // A cancelled iteration ends without an error, also if the upstream throws.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Scan.AsyncIterator: Sendable {}
