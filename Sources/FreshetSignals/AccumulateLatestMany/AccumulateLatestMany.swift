/// Delivers the latest elements of any number of sequences as one array, whenever one of them delivers.
///
/// ```
/// a                              --a-----b--------|
/// b                              ----1-------2-|
/// accumulateLatestMany([a, b])   ----p---q---r----|
///                                p: [a, 1], q: [b, 1], r: [b, 2]
/// ```
///
/// The array has the order in which the sequences were given. There is no array until every sequence has delivered an
/// element. To get one earlier, give each sequence a first element with `prepend`. To get one although a sequence
/// fails, apply `replaceError` to that sequence.
///
/// - **Start.** Making the iterator subscribes to all sequences. Until each sequence has delivered an element, all are
///   read continuously and only their latest elements are kept. A sequence that never suspends does not starve the
///   others. After that there is one array for each element. An empty collection of sequences delivers one empty array
///   and ends.
/// - **The end.** The result ends when all sequences have ended. It ends immediately if a sequence ends without an
///   element.
/// - **Errors.** If one sequence fails, the result fails immediately. The other sequences are cancelled, and elements
///   that the consumer has not taken are dropped. The same happens when a sequence ends without an element.
/// - **Back-pressure.** The next element of a sequence is requested when the consumer has taken the array with its last
///   element. Arrays are made when they are taken, so at most one element of each sequence waits.
/// - **Cancellation.** A cancelled `next()` returns nil when all sequences have ended.
/// - **Cost.** One child task for each sequence. An element costs two task switches and one copy of the array. If the
///   consumer has released the previous array, there is no copy. Memory is linear; it supports 100,000 sequences.
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
    /// The elements so far, while some branches have none; then empty.
    private var gathered: [Element?]
    private var missing: Int
    /// The elements of all branches, once each branch has one; empty before.
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
