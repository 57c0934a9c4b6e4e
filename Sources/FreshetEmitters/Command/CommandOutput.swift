import FreshetPipelines

/// What a command has written: in memory, or kept aside piece by piece if it is long.
///
/// `@unchecked Sendable`: ``CommandRun`` alone has it, and calls it on the loop's thread.
final class CommandOutput: @unchecked Sendable {
    let limit: UInt64
    private let keeper: (any BodyStoring)?
    private var spool: BodySpool
    private var kept: (any PendingBody)?
    private var waiter: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    /// Why it could not be kept aside.
    private(set) var failure: RunFailure?

    /// - Parameter limit: the most bytes.
    init(limit: UInt64, keeper: (any BodyStoring)?) {
        self.limit = limit
        self.keeper = keeper
        spool = BodySpool(handsOn: keeper != nil, limit: limit)
    }

    /// Bytes so far.
    var count: Int { spool.count }
    /// It is kept aside if it is long.
    var isKept: Bool { keeper != nil }
    /// Nothing can be taken until ``next()`` has given the piece away.
    var isFull: Bool { spool.hasPiece }

    /// Takes a piece; false: it would be more than the limit.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard UInt64(spool.count) + UInt64(bytes.count) <= limit else { return false }
        if spool.take(bytes) == .handOn { wake() }
        return true
    }

    /// The command has ended: no further piece is waited for.
    func end() {
        hasEnded = true
        wake()
    }

    /// Waits for the next piece to be kept; nil: the command has ended.
    func next(isolation: isolated (any Actor)? = #isolation) async -> BodySpool.Piece? {
        while true {
            if let piece = spool.next() { return piece }
            if hasEnded { return nil }
            await withCheckedContinuation { wait($0) }
        }
    }

    /// Keeps a piece aside; false: that failed, now or before.
    func keep(_ piece: BodySpool.Piece, isolation: isolated (any Actor)? = #isolation) async -> Bool {
        guard failure == nil else { return false }
        do throws(RunFailure) {
            if kept == nil { kept = try await keeper?.begin(expecting: nil) }
            try await kept?.append(piece.bytes)
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// Keeps the piece that is full, if there is one.
    func keepFull(isolation: isolated (any Actor)? = #isolation) async {
        if let piece = spool.next() { _ = await keep(piece) }
    }

    /// All of it.
    func finish(isolation: isolated (any Actor)? = #isolation) async throws(FetchError) -> FetchedBody {
        let rest = spool.takeRest()
        guard let kept else { return .bytes(rest) }
        do throws(RunFailure) {
            try await kept.append(rest)
        } catch {
            throw .failed(error)
        }
        return .kept(StoredBody(kept, size: spool.count))
    }

    func discard(isolation: isolated (any Actor)? = #isolation) async {
        await kept?.discard()
    }

    /// Keeps who waits. A piece or the end may have come between the look and this: to wait is to suspend, and a
    /// suspension may let others run first.
    private func wait(_ waiter: CheckedContinuation<Void, Never>) {
        guard !isFull, !hasEnded else { return waiter.resume() }
        self.waiter = waiter
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }
}
