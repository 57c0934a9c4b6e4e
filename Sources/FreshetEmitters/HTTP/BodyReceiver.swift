/// Receives the bodies of a request's hops: decodes them, limits them, and keeps them until they are handed on.
///
/// Not `Sendable`: it belongs to its ``HTTPExchange``.
final class BodyReceiver {
    /// The action after a piece.
    enum Action {
        case goOn
        /// The transfer pauses; libcurl then delivers the piece again.
        case pause
        case end(TransferStop)
    }

    /// The number of pieces of a body that are processed before other work may use the loop: a millisecond at most.
    /// libcurl then delivers the rest of its buffer as one piece, even if its chunks are small.
    static let piecesPerTurn = 256
    /// The most memory that is reserved for a body because of its announced length, in bytes.
    static let reserveLimit: UInt64 = 8 << 20
    /// The size of the decoder's output buffer, in bytes.
    static let blockSize = 64 << 10
    /// The number of bytes that are decoded from one piece before other work may use the loop: about two milliseconds.
    static let decodedBytesPerTurn = 1 << 20

    private let maxBytes: UInt64
    private let progress: @Sendable (UInt64) -> Void
    /// Schedules a call of ``HTTPClient/goOn(_:)`` in another turn of the loop.
    var yieldTurn: () -> Void = {}
    /// The part of the body that was not handed on.
    var spool: BodySpool
    /// The body's length, if the origin announced it.
    private(set) var expected: UInt64?
    /// The decoder of the body; nil if the body has no content coding.
    private var decoder: ContentDecoder?
    /// The decoder's output buffer.
    private var block: [UInt8] = []
    /// The number of decoded bytes in ``block`` that are not in the spool yet, because it was full.
    private var blockCount = 0
    /// The number of bytes that were already decoded of the piece that libcurl delivers again.
    private var taken = 0
    /// Whether the transfer waits for another turn of the loop.
    private var hasYielded = false
    /// The number of bytes of an unused body.
    private var ignored = 0
    /// The number of pieces since the loop had other work, and of received bytes before decoding.
    private var pieces = (count: 0, bytes: 0)

    /// - Parameters:
    ///   - maxBytes: the most bytes of the decoded body.
    ///   - handsOn: whether a task stores a long body while it arrives.
    ///   - progress: gets the number of bytes of the body so far.
    init(maxBytes: UInt64, handsOn: Bool, progress: @escaping @Sendable (UInt64) -> Void) {
        self.maxBytes = maxBytes
        self.progress = progress
        spool = BodySpool(handsOn: handsOn, limit: maxBytes)
    }

    /// Whether the body is not compressed, or ended with its compression.
    var isComplete: Bool { decoder?.isComplete ?? true }

    /// Discards the received part of the body: the next bytes begin another body.
    func restart() {
        spool.restart()
        expected = nil
    }

    /// Prepares for the body of another hop, which continues the received part.
    func beginHop() {
        spool.unpause()
        ignored = 0
        decoder = nil
        blockCount = 0
        taken = 0
        pieces = (0, 0)
        hasYielded = false
    }

    /// Prepares for a whole body.
    ///
    /// - Parameters:
    ///   - length: the announced length before decoding.
    ///   - coding: the value of `Content-Encoding`.
    func expect(_ length: UInt64?, coding: String?) throws(TransferStop) {
        do throws(ContentDecoder.Failure) {
            decoder = try ContentDecoder.forCoding(coding)
        } catch {
            throw .undecodable(error)
        }
        guard let length else { return }
        // The length of a compressed body does not determine the decoded length.
        if decoder == nil {
            guard length <= maxBytes else { throw .tooLarge(announced: length) }
            expected = length
        }
        spool.reserve(Int(min(length, maxBytes, Self.reserveLimit)))
    }

    /// Counts a piece of an unused body.
    ///
    /// - Parameter limit: the most bytes of the body that are read.
    func skip(_ piece: UnsafeRawBufferPointer, upTo limit: Int) -> Action {
        ignored += piece.count
        return ignored <= limit ? .goOn : .end(.uninteresting)
    }

    /// Takes a piece of the body.
    func receive(_ piece: UnsafeRawBufferPointer) -> Action {
        if let action = count(piece) { return action }
        let action = decoder.map { decode(piece, $0) } ?? keep(piece)
        progress(UInt64(spool.count))
        return action
    }

    /// Limits the cost of pieces with little content: chunks of a few bytes, or a compressed body that decodes to
    /// nothing. Returns nil if the piece is to be processed.
    private func count(_ piece: UnsafeRawBufferPointer) -> Action? {
        guard pieces.count < Self.piecesPerTurn else {
            pieces.count = 0
            return yield()
        }
        pieces.count += 1
        // A piece that libcurl delivers again was already counted.
        guard taken == 0 && blockCount == 0 else { return nil }
        pieces.bytes += piece.count
        // Compression makes a body at most a thousandth longer.
        guard decoder == nil || UInt64(pieces.bytes) <= maxBytes + maxBytes / 64 + UInt64(Self.blockSize) else {
            return .end(.tooLarge(announced: nil))
        }
        return nil
    }

    private func yield() -> Action {
        hasYielded = true
        yieldTurn()
        return .pause
    }

    /// Adds bytes of the decoded body to the spool.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> Action {
        guard UInt64(spool.count) + UInt64(bytes.count) <= maxBytes else {
            return .end(.tooLarge(announced: nil))
        }
        return spool.take(bytes) == .pause ? .pause : .goOn
    }

    /// Decodes a piece into the spool. A few bytes may become a thousand times as many, so after
    /// ``decodedBytesPerTurn`` the rest waits for the loop's next turn.
    private func decode(_ piece: UnsafeRawBufferPointer, _ decoder: ContentDecoder) -> Action {
        if block.isEmpty { block = [UInt8](repeating: 0, count: Self.blockSize) }
        var made = 0
        while true {
            if blockCount > 0 {
                let action = block.withUnsafeBytes { keep(UnsafeRawBufferPointer(rebasing: $0[..<blockCount])) }
                guard case .goOn = action else { return action }
                made += blockCount
                blockCount = 0
            }
            if made >= Self.decodedBytesPerTurn { return yield() }
            let input = UnsafeRawBufferPointer(rebasing: piece.dropFirst(taken))
            let result = block.withUnsafeMutableBytes { output in
                Result { () throws(ContentDecoder.Failure) in try decoder.decode(input, into: output) }
            }
            switch result {
            case .success(let count):
                taken += count.taken
                blockCount = count.made
            case .failure(let failure):
                return .end(.undecodable(failure))
            }
            if blockCount == 0 {
                taken = 0
                return .goOn
            }
        }
    }

    /// Returns whether the transfer was paused and can continue now.
    func unpause() -> Bool {
        defer { hasYielded = false }
        return spool.unpause() || hasYielded
    }
}
