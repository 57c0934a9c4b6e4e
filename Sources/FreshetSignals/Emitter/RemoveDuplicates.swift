extension AsyncSequence where Self: Sendable, Element: Sendable & Equatable {
    /// The sequence without elements that equal their predecessor.
    ///
    /// ```
    /// upstream            a-a-b-b-a-|
    /// removeDuplicates()  a---b---a-|
    /// ```
    ///
    /// Each iteration remembers its own last element. Making the iterator subscribes to the upstream.
    public func removeDuplicates() -> some AsyncSequence<Element, Failure> & Sendable {
        RemoveDuplicates(base: self)
    }
}

private struct RemoveDuplicates<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable & Equatable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        var last: Element?

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            while let element = try await base.next(isolation: isolation) {
                if let last, last == element { continue }
                last = element
                return element
            }
            return nil
        }
    }
}

@available(*, unavailable)
extension RemoveDuplicates.AsyncIterator: Sendable {}
