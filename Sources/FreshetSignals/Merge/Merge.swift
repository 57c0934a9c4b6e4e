/// Delivers the elements of several sequences as they arrive.
///
/// ```
/// a               --a-----b--|
/// b               ----1---2------|
/// merge([a, b])   --a-1---(b2)---|
/// ```
///
/// To merge sequences of different types with the same elements, make them emitters: `merge([Emitter(a), Emitter(b)])`.
///
/// - **Start.** Making the iterator subscribes to all sequences. Elements are requested from the first `next()` on.
/// - **The end.** The result ends when all sequences have ended; a merge of no sequences ends immediately.
/// - **Errors.** If one sequence fails, the result fails immediately. The other sequences are cancelled, and elements
///   that the consumer has not taken are dropped.
/// - **Back-pressure.** At most one element of each sequence waits; waiting elements are taken first come, first
///   served. The next element of a sequence is requested when the consumer has taken its last one.
/// - **Cancellation.** A cancelled `next()` returns nil when all sequences have ended.
/// - **Cost.** One child task for each sequence, and two task switches for each element. Signals are merged without any
///   task: see ``Signal/merge(_:)-(Sequence<Signal>)``.
///
/// - Parameter sequences: The sequences, in the order in which their first elements are requested.
public func merge<S: AsyncSequence & Sendable>(
    _ sequences: some Sequence<S>
) -> some AsyncSequence<S.Element, S.Failure> & Sendable where S.Element: Sendable {
    Merge(sequences: Array(sequences))
}

/// One signal that fires whenever one of several signals fires. Like `Signal.merge(_:)`, it starts no task.
public func merge(_ signals: some Sequence<Signal>) -> Signal {
    Signal.merge(signals)
}

private struct Merge<S: AsyncSequence & Sendable>: AsyncSequence, Sendable where S.Element: Sendable {
    typealias Element = S.Element
    typealias Failure = S.Failure

    let sequences: [S]

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let upstreams = sequences.map { UnsafeTransfer($0.makeAsyncIterator()) }
        return DriverIterator { driver throws(Failure) in
            let round = driver.beginRound()
            await withChildren(upstreams.count) { number in
                _ = await driver.exhaust(upstreams[number], rethrowing: { $0 }) { element in
                    await driver.offer(element, in: round)
                }
            }
        }
    }
}
