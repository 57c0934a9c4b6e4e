extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Waits for the first output of a signal, then delivers the sequence.
    ///
    /// ```
    /// signal                   ---s---s---
    /// upstream                 -a-b-c-d-|      subscribed, from its beginning, at the first output
    /// wait(untilOutputFrom:)   ----a-b-c-d-|
    /// ```
    ///
    /// **Meaning.** Making the iterator subscribes only to the signal. Its first output ends the subscription to the
    /// signal and subscribes to the upstream; a hot upstream is received from that moment on. An output before the
    /// first `next()`, or a current value that the signal replays, ends the wait immediately. If the signal ends
    /// without an output, the result ends without an element. Each iteration waits again.
    ///
    /// **Errors.** The upstream's.
    ///
    /// **Cancellation.** If the task is cancelled during the wait, the result ends and the upstream is never
    /// subscribed. After the wait the upstream's rules apply.
    ///
    /// **Back-pressure.** One element is taken for each request.
    ///
    /// **Cost.** No task and no lock: the task in `next()` waits for the signal, then for the upstream.
    ///
    /// - Parameter signal: Any sequence that cannot fail. Its elements are ignored.
    public func wait<S: AsyncSequence & Sendable>(
        untilOutputFrom signal: S
    ) -> some AsyncSequence<Element, Failure> & Sendable where S.Failure == Never {
        Wait(base: self, signal: signal)
    }
}

private struct Wait<Base: AsyncSequence & Sendable, Gate: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable, Gate.Failure == Never {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let signal: Gate

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(phase: .waiting(signal.makeAsyncIterator(), base))
    }

    enum Phase {
        /// Waits for an output; holds the upstream to subscribe to after it.
        case waiting(Gate.AsyncIterator, Base)
        case released(Base.AsyncIterator)
        case over
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var phase: Phase

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            if case .waiting(var signal, let base) = phase {
                phase = .over
                // A cancelled wait ends, like a wait for a signal that has ended: neither subscribes to the upstream.
                guard await signal.next(isolation: isolation) != nil, !Task.isCancelled else { return nil }
                phase = .released(base.makeAsyncIterator())
            }
            guard case .released(var upstream) = phase else { return nil }
            phase = .over
            do throws(Failure) {
                let element = try await upstream.next(isolation: isolation)
                phase = .released(upstream)
                return element
            } catch {
                // A cancelled iteration ends without an error, also if the upstream throws.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Wait.AsyncIterator: Sendable {}
