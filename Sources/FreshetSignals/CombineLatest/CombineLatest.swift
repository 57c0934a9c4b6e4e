/// Delivers the latest elements of two sequences together, whenever one of them delivers.
///
/// ```
/// a                     --a-----b--------|
/// b                     ----1-------2-|
/// combineLatest(a, b)   ----p---q---r----|
///                       p: a1, q: b1, r: b2
/// ```
///
/// - **Start.** Making the iterator subscribes to both sequences. Until each has delivered an element, both are read
///   continuously and only their latest elements are kept.
/// - **The end.** The result ends when both sequences have ended. It ends immediately if a sequence ends without an
///   element.
/// - **Errors.** If one sequence fails, the result fails immediately, and elements that the consumer has not taken are
///   dropped. To combine sequences with different failure types, make them emitters of one `Failure` first.
/// - **Back-pressure.** There is one result for each element. The next element of a sequence is requested when the
///   consumer has taken the result with its last element.
/// - **Cancellation.** A cancelled `next()` returns nil when both sequences have ended.
/// - **Cost.** One child task for each sequence, and two task switches for each element.
public func combineLatest<A: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    _ a: A, _ b: B
) -> some AsyncSequence<(A.Element, B.Element), A.Failure> & Sendable
where A.Failure == B.Failure, A.Element: Sendable, B.Element: Sendable {
    CombineLatest2(a: a, b: b)
}

/// Delivers the latest elements of three sequences together, whenever one of them delivers.
///
/// It behaves like ``combineLatest(_:_:)``.
public func combineLatest<A: AsyncSequence & Sendable, B: AsyncSequence & Sendable, C: AsyncSequence & Sendable>(
    _ a: A, _ b: B, _ c: C
) -> some AsyncSequence<(A.Element, B.Element, C.Element), A.Failure> & Sendable
where A.Failure == B.Failure, A.Failure == C.Failure, A.Element: Sendable, B.Element: Sendable, C.Element: Sendable {
    CombineLatest3(a: a, b: b, c: c)
}

private struct CombineLatest2<A: AsyncSequence & Sendable, B: AsyncSequence & Sendable>: AsyncSequence, Sendable
where A.Failure == B.Failure, A.Element: Sendable, B.Element: Sendable {
    typealias Element = (A.Element, B.Element)
    typealias Failure = A.Failure

    let a: A
    let b: B

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let (a, b) = (UnsafeTransfer(a.makeAsyncIterator()), UnsafeTransfer(b.makeAsyncIterator()))
        return DriverIterator { driver throws(Failure) in
            let storage = LatestStorage<Row2<A.Element, B.Element>, Failure>(Row2(), branches: 2)
            let round = driver.beginRound()
            await withDiscardingTaskGroup { group in
                group.addTask { await storage.run(0, a, for: driver, in: round, value: { .a($0) }) }
                group.addTask { await storage.run(1, b, for: driver, in: round, value: { .b($0) }) }
            }
        }
    }
}

private struct CombineLatest3<A: AsyncSequence & Sendable, B: AsyncSequence & Sendable, C: AsyncSequence & Sendable>:
    AsyncSequence, Sendable
where A.Failure == B.Failure, A.Failure == C.Failure, A.Element: Sendable, B.Element: Sendable, C.Element: Sendable {
    typealias Element = (A.Element, B.Element, C.Element)
    typealias Failure = A.Failure

    let a: A
    let b: B
    let c: C

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let (a, b, c) = (
            UnsafeTransfer(a.makeAsyncIterator()), UnsafeTransfer(b.makeAsyncIterator()),
            UnsafeTransfer(c.makeAsyncIterator())
        )
        return DriverIterator { driver throws(Failure) in
            let storage = LatestStorage<Row3<A.Element, B.Element, C.Element>, Failure>(Row3(), branches: 3)
            let round = driver.beginRound()
            await withDiscardingTaskGroup { group in
                group.addTask { await storage.run(0, a, for: driver, in: round, value: { .a($0) }) }
                group.addTask { await storage.run(1, b, for: driver, in: round, value: { .b($0) }) }
                group.addTask { await storage.run(2, c, for: driver, in: round, value: { .c($0) }) }
            }
        }
    }
}

private struct Row2<A: Sendable, B: Sendable>: LatestRow {
    enum Value: Sendable {
        case a(A)
        case b(B)
    }

    private var a: A?
    private var b: B?

    var snapshot: (A, B)? {
        guard let a, let b else { return nil }
        return (a, b)
    }

    mutating func set(_ value: Value, of branch: Int) {
        switch value {
        case .a(let value): a = value
        case .b(let value): b = value
        }
    }
}

private struct Row3<A: Sendable, B: Sendable, C: Sendable>: LatestRow {
    enum Value: Sendable {
        case a(A)
        case b(B)
        case c(C)
    }

    private var a: A?
    private var b: B?
    private var c: C?

    var snapshot: (A, B, C)? {
        guard let a, let b, let c else { return nil }
        return (a, b, c)
    }

    mutating func set(_ value: Value, of branch: Int) {
        switch value {
        case .a(let value): a = value
        case .b(let value): b = value
        case .c(let value): c = value
        }
    }
}
