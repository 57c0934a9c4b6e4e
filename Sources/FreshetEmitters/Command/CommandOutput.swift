import FreshetPipelines

/// The output of a command: in memory, or stored piece by piece if it is long.
///
/// `@unchecked Sendable`: only ``CommandRun`` uses it, on the loop's thread.
final class CommandOutput: @unchecked Sendable {
    let limit: UInt64
    private let bodyStore: (any BodyStoring)?
    private var spool: BodySpool
    private var kept: (any PendingBody)?
    private var waiter: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    /// Why the output could not be stored.
    private(set) var failure: RunFailure?

    /// - Parameter limit: the most bytes of output.
    init(limit: UInt64, bodyStore: (any BodyStoring)?) {
        self.limit = limit
        self.bodyStore = bodyStore
        spool = BodySpool(handsOn: bodyStore != nil, limit: limit)
    }

    /// The number of bytes so far.
    var count: Int { spool.count }
    /// Whether the output is stored if it is long.
    var isKept: Bool { bodyStore != nil }
    /// Whether ``take(_:)`` must not be called until ``next()`` has returned the full piece.
    var isFull: Bool { spool.hasPiece }

    /// Takes a piece. Returns false if the output would exceed the limit.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard UInt64(spool.count) + UInt64(bytes.count) <= limit else { return false }
        if spool.take(bytes) == .handOn { wake() }
        return true
    }

    /// The command has ended: ``next()`` no longer waits for a piece.
    func end() {
        hasEnded = true
        wake()
    }

    /// Waits for the next piece to store; nil if the command has ended.
    func next(isolation: isolated (any Actor)? = #isolation) async -> BodySpool.Piece? {
        while true {
            if let piece = spool.next() { return piece }
            if hasEnded { return nil }
            await withCheckedContinuation { wait($0) }
        }
    }

    /// Stores a piece. Returns false if this or an earlier piece could not be stored.
    func keep(_ piece: BodySpool.Piece, isolation: isolated (any Actor)? = #isolation) async -> Bool {
        guard failure == nil else { return false }
        do throws(RunFailure) {
            if kept == nil { kept = try await bodyStore?.begin(expecting: nil) }
            try await kept?.append(piece.bytes)
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// Stores the full piece, if there is a full piece.
    func keepFull(isolation: isolated (any Actor)? = #isolation) async {
        if let piece = spool.next() { _ = await keep(piece) }
    }

    /// Returns the whole output.
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

    /// Stores the waiter. It checks again for a piece or the end, because other tasks may run before the suspension.
    private func wait(_ waiter: CheckedContinuation<Void, Never>) {
        guard !isFull, !hasEnded else { return waiter.resume() }
        self.waiter = waiter
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }
}
