/// Delivers the latest elements of two sequences together, whenever one of them delivers.
///
/// ```
/// a                     --a-----b--------|
/// b                     ----1-------2-|
/// combineLatest(a, b)   ----p---q---r----|
///                       p: a1, q: b1, r: b2
/// ```
///
/// - **Start.** Both are subscribed when the iterator is made. Until each has delivered, both are read on and only
///   their latest is kept.
/// - **The end.** It ends when both have ended; one that ends without an element ends it at once.
/// - **Errors.** A failure of one fails the result at once; what nobody has taken is dropped. Sequences that fail in
///   different ways are combined as emitters of one `Failure`.
/// - **Back-pressure.** One result for each element; a sequence is read on when the result of its last element was
///   taken.
/// - **Cancellation.** A cancelled `next()` returns nil when both have ended.
/// - **Cost.** A child task for each, and two switches of tasks for each element.
public func combineLatest<A: AsyncSequence & Sendable, B: AsyncSequence & Sendable>(
    _ a: A, _ b: B
) -> some AsyncSequence<(A.Element, B.Element), A.Failure> & Sendable
where A.Failure == B.Failure, A.Element: Sendable, B.Element: Sendable {
    CombineLatest2(a: a, b: b)
}

/// Delivers the latest elements of three sequences together, whenever one of them delivers.
///
/// As ``combineLatest(_:_:)``.
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
