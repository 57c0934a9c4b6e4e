/// Delivers the latest elements of any number of sequences as one array, whenever one of them delivers.
///
/// ```
/// a                              --a-----b--------|
/// b                              ----1-------2-|
/// accumulateLatestMany([a, b])   ----p---q---r----|
///                                p: [a, 1], q: [b, 1], r: [b, 2]
/// ```
///
/// The array has the order in which the sequences were given. To have it before the slowest of them has delivered,
/// give each a first element with `prepend`; to have it in spite of one that fails, give that a `replaceError`.
///
/// - **Start.** All are subscribed when the iterator is made. Until each has delivered, all are read on and only their
///   latest is kept; one that never suspends starves none. Then there is one array for each element. Of no sequences
///   there is one array, the empty one, and the end.
/// - **The end.** It ends when all have ended; one that ends without an element ends it at once.
/// - **Errors.** A failure of one fails the result at once. In both cases the others are cancelled, and what they
///   delivered and nobody has taken is dropped.
/// - **Back-pressure.** A sequence is read on when the array of its last element was taken. Arrays are made when they
///   are taken, so that one element a sequence is all that waits.
/// - **Cancellation.** A cancelled `next()` returns nil when all have ended.
/// - **Cost.** A child task for each sequence. An element costs two switches of tasks and one copy of the array, and
///   not even that if the consumer has let go of the last one. Memory is linear; 100,000 sequences are no problem.
///
/// - Parameter sequences: The branches, in the order of the array.
public func accumulateLatestMany<S: AsyncSequence & Sendable>(
    _ sequences: some Sequence<S>
) -> some AsyncSequence<[S.Element], S.Failure> & Sendable where S.Element: Sendable {
    AccumulateLatestMany(sequences: Array(sequences))
}

private struct AccumulateLatestMany<S: AsyncSequence & Sendable>: AsyncSequence, Sendable where S.Element: Sendable {
    typealias Element = [S.Element]
    typealias Failure = S.Failure

    let sequences: [S]

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let upstreams = sequences.map { UnsafeTransfer($0.makeAsyncIterator()) }
        return DriverIterator { driver throws(Failure) in
            let round = driver.beginRound()
            guard !upstreams.isEmpty else {
                _ = await driver.offer([], in: round)
                return
            }
            let row = ArrayRow<S.Element>(count: upstreams.count)
            let storage = LatestStorage<ArrayRow<S.Element>, Failure>(row, branches: upstreams.count)
            await withChildren(upstreams.count) { number in
                await storage.run(number, upstreams[number], for: driver, in: round, value: { $0 })
            }
        }
    }
}

/// The latest elements of many branches, as an array that is changed in place.
struct ArrayRow<Element: Sendable>: LatestRow {
    /// While some are missing; then empty.
    private var gathered: [Element?]
    private var missing: Int
    /// When none is missing; empty before.
    private var latest: [Element] = []

    init(count: Int) {
        gathered = Array(repeating: nil, count: count)
        missing = count
    }

    var snapshot: [Element]? { missing == 0 ? latest : nil }

    mutating func set(_ value: Element, of branch: Int) {
        guard missing > 0 else {
            latest[branch] = value
            return
        }
        if gathered[branch] == nil {
            missing -= 1
        }
        gathered[branch] = value
        if missing == 0 {
            latest = gathered.compactMap(\.self)
            gathered = []
        }
    }
}
