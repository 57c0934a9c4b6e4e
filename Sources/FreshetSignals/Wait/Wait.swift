extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, from the first output of a signal on.
    ///
    /// ```
    /// signal                   ---s---s---
    /// upstream                 -a-b-c-d-|      subscribed, from its beginning, at the first output
    /// wait(untilOutputFrom:)   ----a-b-c-d-|
    /// ```
    ///
    /// **Meaning.** Only the signal is subscribed when the iterator is made. Its first output is the only one that
    /// matters: from then on the signal is dropped and the upstream subscribed, so a hot upstream is heard from that
    /// moment. An output that came before the first `next()`, or a present value that the signal replays, releases at
    /// once. If the signal ends without any output the result ends, empty. Each iteration waits anew.
    ///
    /// **Errors.** Those of the upstream.
    ///
    /// **Cancellation.** Cancelled while it waits, the result ends and the upstream is never touched. Afterwards as the
    /// upstream.
    ///
    /// **Back-pressure.** One element is taken for each that is asked for.
    ///
    /// **Cost.** No task and no lock: the task that asks waits for the signal, then for the upstream.
    ///
    /// - Parameter signal: Any sequence that cannot fail. What its output is does not matter.
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
        /// For an output, with the upstream that follows.
        case waiting(Gate.AsyncIterator, Base)
        case released(Base.AsyncIterator)
        case over
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var phase: Phase

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            if case .waiting(var signal, let base) = phase {
                phase = .over
                // A cancelled wait is over, like one whose signal has ended: neither touches the upstream.
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
                // A cancelled iteration ends; that it could not go on is no news.
                guard !Task.isCancelled else { return nil }
                throw error
            }
        }
    }
}

@available(*, unavailable)
extension Wait.AsyncIterator: Sendable {}
