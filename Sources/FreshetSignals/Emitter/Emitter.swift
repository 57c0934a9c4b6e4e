/// Anything that delivers data: once, several times, or until it is exhausted; it may fail.
///
/// The one type for recipes of different make: it erases what a sequence is and keeps what it delivers and how it may
/// fail. Each iteration of an emitter is an iteration of its own of what it was made from.
///
/// ```swift
/// let sources: [Emitter<Int, Never>] = [Emitter(currentValue), .once { 1 }]
/// ```
public struct Emitter<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
    private let makeIterator: @Sendable () -> any AsyncIteratorProtocol<Element, Failure>

    /// Erases a sequence's type.
    public init(_ base: some AsyncSequence<Element, Failure> & Sendable) {
        makeIterator = { base.makeAsyncIterator() }
    }

    /// An emitter of one value, loaded anew by each iteration at its first `next()`.
    ///
    /// ```
    /// next() asked  ^-------
    /// load          --v
    /// once          --(v|)
    /// ```
    ///
    /// The load runs in the task that asks. If that is cancelled the iteration ends without an element or an error,
    /// after the load has returned.
    ///
    /// - Parameter load: Makes the value. Its error is the emitter's.
    public static func once(_ load: @escaping @Sendable () async throws(Failure) -> Element) -> Emitter {
        Emitter(Once(load: load))
    }

    /// Begins an iteration.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: makeIterator())
    }

    /// One iteration.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: any AsyncIteratorProtocol<Element, Failure>

        /// The next element, as of what the emitter was made from.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(Failure) -> Element? {
            try await base.next(isolation: isolation)
        }
    }
}

@available(*, unavailable)
extension Emitter.AsyncIterator: Sendable {}

/// One value, loaded when it is asked for.
private struct Once<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
    let load: @Sendable () async throws(Failure) -> Element

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(load: load)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        /// Nil once it was asked.
        var load: (@Sendable () async throws(Failure) -> Element)?

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            guard let load = load.take(), !Task.isCancelled else { return nil }
            do throws(Failure) {
                let element = try await load()
                return Task.isCancelled ? nil : element
            } catch {
                // A cancelled iteration ends; that its load could not go on is no news.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Once.AsyncIterator: Sendable {}
