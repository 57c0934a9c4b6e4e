/// Delivers the elements of several sequences as they come.
///
/// ```
/// a               --a-----b--|
/// b               ----1---2------|
/// merge([a, b])   --a-1---(b2)---|
/// ```
///
/// Sequences of different types with the same elements are merged as emitters: `merge([Emitter(a), Emitter(b)])`.
///
/// - **Subscription.** All are subscribed when the iterator is made, and asked from the first `next()` on.
/// - **The end.** It ends when all have ended; a merge of none ends at once.
/// - **Errors.** A failure of one fails the result at once. The others are cancelled, and what they delivered and
///   nobody has taken is dropped.
/// - **Back-pressure.** Of each sequence one element waits to be taken, first come, first served; it is asked for
///   the next one when that was.
/// - **Cancellation.** A cancelled `next()` returns nil when all of them have ended.
/// - **Cost.** A child task for each sequence, and two switches of tasks for each element. Signals are merged without
///   any task: see ``Signal/merge(_:)-(Sequence<Signal>)``.
///
/// - Parameter sequences: In the order in which they are asked first.
public func merge<S: AsyncSequence & Sendable>(
    _ sequences: some Sequence<S>
) -> some AsyncSequence<S.Element, S.Failure> & Sendable where S.Element: Sendable {
    Merge(sequences: Array(sequences))
}

/// One signal that fires whenever one of several does: `Signal.merge(_:)`, which starts no task.
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
