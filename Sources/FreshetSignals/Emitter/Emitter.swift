/// A type-erased sequence that delivers data: once, several times, or until it is exhausted. It may fail.
///
/// It hides the type of a sequence and keeps the types of its elements and its failure, so that different sequences
/// have one type. Each iteration of an emitter is a separate iteration of the sequence that it was made from.
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

    /// An emitter of one value, which each iteration loads again at its first `next()`.
    ///
    /// ```
    /// next() asked  ^-------
    /// load          --v
    /// once          --(v|)
    /// ```
    ///
    /// The load runs in the task that calls `next()`. If that task is cancelled, the iteration ends without an element
    /// or an error, after the load has returned.
    ///
    /// - Parameter load: Loads the value. Its error is the emitter's.
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

        /// The next element of the underlying sequence.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(Failure) -> Element? {
            try await base.next(isolation: isolation)
        }
    }
}

@available(*, unavailable)
extension Emitter.AsyncIterator: Sendable {}

/// One value, loaded at the first request.
private struct Once<Element: Sendable, Failure: Error>: AsyncSequence, Sendable {
    let load: @Sendable () async throws(Failure) -> Element

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(load: load)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        /// Nil after the first request.
        var load: (@Sendable () async throws(Failure) -> Element)?

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            guard let load = load.take(), !Task.isCancelled else { return nil }
            do throws(Failure) {
                let element = try await load()
                return Task.isCancelled ? nil : element
            } catch {
                // A cancelled iteration ends without an error, also if the load throws.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Once.AsyncIterator: Sendable {}
