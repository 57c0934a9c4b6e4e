/// Buffers an arriving body: completely in memory or, if a writer stores it meanwhile, in pieces, of which only a few
/// are in memory at the same time.
///
/// One piece fills while the previous piece waits for the writer or is being written. If the writer is slower than the
/// origin, the transfer pauses. A body of one piece is never handed on: it ends before it is known to be longer.
struct BodySpool {
    /// The size of a piece, in bytes: small enough for many concurrent bodies, and so large that the overhead of a
    /// piece is negligible.
    static let pieceSize = 256 << 10

    /// A part of the body for the writer.
    struct Piece: Hashable {
        var bytes: [UInt8]
        /// Whether the piece begins a body: pieces before it belong to another body.
        var isFirst: Bool
    }

    enum TakeAction: Hashable {
        case none
        /// ``next()`` has a piece.
        case handOn
        /// The bytes were not taken. The caller must pass them again after ``unpause()`` has returned true.
        case pause
    }

    private let handsOn: Bool
    private let limit: UInt64
    private var filling: [UInt8] = []
    private var full: [UInt8]?
    private var isPaused = false
    /// The number of bytes of the body so far, including those that were handed on.
    private(set) var count = 0
    /// Whether a piece of the body has been handed on.
    private(set) var isHandedOn = false

    /// - Parameters:
    ///   - handsOn: whether a writer takes pieces; otherwise the whole body stays in memory.
    ///   - limit: the most bytes of the body.
    init(handsOn: Bool, limit: UInt64) {
        self.handsOn = handsOn
        self.limit = limit
    }

    /// Discards the body: the next bytes begin another body.
    mutating func restart() {
        filling.removeAll(keepingCapacity: true)
        full = nil
        count = 0
        isHandedOn = false
    }

    /// Reserves memory for the expected number of bytes.
    mutating func reserve(_ size: Int) {
        filling.reserveCapacity(handsOn ? min(size, Self.pieceSize) : size)
    }

    mutating func take(_ bytes: UnsafeRawBufferPointer) -> TakeAction {
        var action = TakeAction.none
        if handsOn, !filling.isEmpty, filling.count + bytes.count > Self.pieceSize {
            guard full == nil else {
                isPaused = true
                return .pause
            }
            full = filling
            filling = []
            filling.reserveCapacity(Self.pieceSize)
            action = .handOn
        }
        if !handsOn { BufferGrowth.prepare(&filling, for: bytes.count, limit: limit) }
        filling.append(contentsOf: bytes)
        count += bytes.count
        return action
    }

    /// Whether ``next()`` has a piece.
    var hasPiece: Bool { full != nil }

    /// Removes and returns the next piece to write; nil if no piece is full.
    mutating func next() -> Piece? {
        guard let bytes = full.take() else { return nil }
        defer { isHandedOn = true }
        return Piece(bytes: bytes, isFirst: !isHandedOn)
    }

    /// Returns whether the transfer was paused and can continue now.
    @discardableResult
    mutating func unpause() -> Bool {
        guard isPaused, full == nil else { return false }
        isPaused = false
        return true
    }

    /// Removes and returns the bytes that were not handed on, when the body is complete.
    mutating func takeRest() -> [UInt8] {
        defer { filling = [] }
        return filling
    }
}
