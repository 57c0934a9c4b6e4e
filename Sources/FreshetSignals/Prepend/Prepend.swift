extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence with some values before it.
    ///
    /// ```
    /// upstream      --a-b-|
    /// prepend(p, q) (pq)-a-b-|    each immediately when it is requested
    /// ```
    ///
    /// **Meaning.** The values come first, in the given order, then the elements of the upstream. Making the iterator
    /// subscribes to the upstream, so firings of a signal during the delivery of the values are not lost. The first
    /// element of the upstream is requested after the last value.
    ///
    /// **Errors.** The upstream's, after the values.
    ///
    /// **Cancellation.** A cancelled `next()` returns nil and takes none of the values.
    ///
    /// **Back-pressure.** No element is taken before it is requested.
    ///
    /// **Cost.** No task and no lock; all iterations share one array of the values.
    ///
    /// - Parameter values: The values to deliver first.
    public func prepend(_ values: Element...) -> some AsyncSequence<Element, Failure> & Sendable {
        Prepend(base: self, values: values)
    }
}

private struct Prepend<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let values: [Element]

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(values: values[...], base: base.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var values: ArraySlice<Element>
        var base: Base.AsyncIterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            if !values.isEmpty {
                return Task.isCancelled ? nil : values.removeFirst()
            }
            do throws(Failure) {
                return try await base.next(isolation: isolation)
            } catch {
                // A cancelled iteration ends without an error, also if the upstream throws.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Prepend.AsyncIterator: Sendable {}
