/// A body as it comes: all in memory, or, if somebody writes it away meanwhile, in pieces of which few are here at once.
///
/// One piece fills while the one before waits for its writer or is being written; if the writer is slower than the
/// origin, the origin waits. A body of one piece is never handed on: it ends before it is known to be longer.
struct BodySpool {
    /// Bytes: few enough for many bodies at once, and enough that handing a piece on costs nothing beside writing it.
    static let pieceSize = 256 << 10

    /// A part of the body for its writer.
    struct Piece: Hashable {
        var bytes: [UInt8]
        /// What was handed on before belongs to another body.
        var isFirst: Bool
    }

    enum TakeAction: Hashable {
        case none
        /// ``next()`` has a piece.
        case handOn
        /// Nothing was taken: it has to come again when ``unpause()`` says so.
        case pause
    }

    private let handsOn: Bool
    private let limit: UInt64
    private var filling: [UInt8] = []
    private var full: [UInt8]?
    private var isPaused = false
    /// Bytes of the body so far, those included that were handed on.
    private(set) var count = 0
    /// Something of the body has been handed on.
    private(set) var isHandedOn = false

    /// - Parameters:
    ///   - handsOn: somebody takes pieces; else all stays.
    ///   - limit: the most bytes that come.
    init(handsOn: Bool, limit: UInt64) {
        self.handsOn = handsOn
        self.limit = limit
    }

    /// What comes next is the beginning of another body.
    mutating func restart() {
        filling.removeAll(keepingCapacity: true)
        full = nil
        count = 0
        isHandedOn = false
    }

    /// So many bytes are expected.
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

    /// ``next()`` has a piece.
    var hasPiece: Bool { full != nil }

    /// The piece that is to be written next; nil: there is none yet.
    mutating func next() -> Piece? {
        guard let bytes = full.take() else { return nil }
        defer { isHandedOn = true }
        return Piece(bytes: bytes, isFirst: !isHandedOn)
    }

    /// Whether the origin waits and need not any more.
    @discardableResult
    mutating func unpause() -> Bool {
        guard isPaused, full == nil else { return false }
        isPaused = false
        return true
    }

    /// What is left when the body is whole.
    mutating func takeRest() -> [UInt8] {
        defer { filling = [] }
        return filling
    }
}
