import Testing

@testable import FreshetEmitters

@Suite("The spool of an arriving body")
struct BodySpoolTests {
    private static let size = BodySpool.pieceSize

    private func take(_ count: Int, of byte: UInt8, _ spool: inout BodySpool) -> BodySpool.TakeAction {
        [UInt8](repeating: byte, count: count).withUnsafeBytes { spool.take($0) }
    }

    @Test("a body in memory may have any length and has no pieces to hand on")
    func inMemory() {
        var spool = BodySpool(handsOn: false, limit: 64 << 20)
        #expect(take(Self.size, of: 1, &spool) == .none)
        #expect(take(Self.size, of: 2, &spool) == .none)
        #expect(spool.next() == nil)
        #expect(spool.count == 2 * Self.size && !spool.isHandedOn)
        #expect(spool.takeRest().count == 2 * Self.size)
    }

    @Test("a body in memory that is not small is not copied while it grows")
    func growth() {
        var body: [UInt8] = []
        var copies = 0
        var place: UnsafeRawPointer?
        let piece = [UInt8](repeating: 1, count: 64 << 10)
        while body.count < 20 << 20 {
            BufferGrowth.prepare(&body, for: piece.count, limit: 64 << 20)
            body.append(contentsOf: piece)
            let now = body.withUnsafeBytes { $0.baseAddress }
            if now != place, body.count > 2 * BufferGrowth.small { copies += 1 }
            place = now
        }
        #expect(copies == 0)
    }

    @Test("a body of one piece is not handed on; with one byte more it is")
    func onePiece() {
        var spool = BodySpool(handsOn: true, limit: 64 << 20)
        #expect(take(Self.size, of: 1, &spool) == .none)
        #expect(spool.next() == nil)
        #expect(take(1, of: 2, &spool) == .handOn)
        #expect(spool.next() == .init(bytes: [UInt8](repeating: 1, count: Self.size), isFirst: true))
        #expect(spool.next() == nil)
        #expect(spool.isHandedOn && spool.count == Self.size + 1)
        #expect(spool.takeRest() == [2])
    }

    @Test("while a piece waits, further bytes fill the next piece; then the spool pauses until a piece is taken")
    func pause() {
        var spool = BodySpool(handsOn: true, limit: 64 << 20)
        #expect(take(Self.size, of: 1, &spool) == .none)
        #expect(take(Self.size, of: 2, &spool) == .handOn)
        #expect(spool.unpause() == false)
        #expect(take(1, of: 3, &spool) == .pause)
        #expect(take(1, of: 3, &spool) == .pause)
        #expect(spool.count == 2 * Self.size)
        #expect(spool.unpause() == false)
        #expect(spool.next()?.isFirst == true)
        #expect(spool.unpause() == true)
        #expect(spool.unpause() == false)
        #expect(take(1, of: 3, &spool) == .handOn)
        #expect(spool.next() == .init(bytes: [UInt8](repeating: 2, count: Self.size), isFirst: false))
        #expect(spool.takeRest() == [3])
    }

    @Test("a new body begins with its own first piece, without bytes of the previous body")
    func restart() {
        var spool = BodySpool(handsOn: true, limit: 64 << 20)
        #expect(take(Self.size, of: 1, &spool) == .none)
        #expect(take(Self.size, of: 2, &spool) == .handOn)
        #expect(spool.next()?.isFirst == true)
        #expect(take(Self.size, of: 3, &spool) == .handOn)
        spool.restart()
        #expect(spool.next() == nil)
        #expect(spool.count == 0 && !spool.isHandedOn)
        #expect(take(Self.size, of: 4, &spool) == .none)
        #expect(take(Self.size, of: 5, &spool) == .handOn)
        #expect(spool.next() == .init(bytes: [UInt8](repeating: 4, count: Self.size), isFirst: true))
    }

    @Test("bytes that exceed the piece size are one piece")
    func large() {
        var spool = BodySpool(handsOn: true, limit: 64 << 20)
        #expect(take(Self.size + 1, of: 1, &spool) == .none)
        #expect(take(1, of: 2, &spool) == .handOn)
        #expect(spool.next()?.bytes.count == Self.size + 1)
    }
}
