extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence with some values before it.
    ///
    /// ```
    /// upstream      --a-b-|
    /// prepend(p, q) (pq)-a-b-|    each at once when it is asked for
    /// ```
    ///
    /// **Meaning.** The values come first, in the order given, then what the upstream emits. The upstream is subscribed
    /// when the iterator is made, so what a signal fires while the values are consumed is not lost; it is first asked
    /// when the values are used up.
    ///
    /// **Errors.** Those of the upstream, after the values.
    ///
    /// **Cancellation.** A cancelled `next()` returns nil and takes none of the values.
    ///
    /// **Back-pressure.** Nothing is taken before it is asked for.
    ///
    /// **Cost.** No task and no lock; the values are kept in one array that all iterations share.
    ///
    /// - Parameter values: What comes first.
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
                // A cancelled iteration ends; that it could not go on is no news.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Prepend.AsyncIterator: Sendable {}
