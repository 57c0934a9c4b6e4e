import Testing

@testable import FreshetEmitters

@Suite("A body as it comes, piece by piece")
struct BodySpoolTests {
    private static let size = BodySpool.pieceSize

    private func take(_ count: Int, of byte: UInt8, _ spool: inout BodySpool) -> BodySpool.TakeAction {
        [UInt8](repeating: byte, count: count).withUnsafeBytes { spool.take($0) }
    }

    @Test("in memory it has any length, and nobody is told")
    func inMemory() {
        var spool = BodySpool(handsOn: false, limit: 64 << 20)
        #expect(take(Self.size, of: 1, &spool) == .none)
        #expect(take(Self.size, of: 2, &spool) == .none)
        #expect(spool.next() == nil)
        #expect(spool.count == 2 * Self.size && !spool.isHandedOn)
        #expect(spool.takeRest().count == 2 * Self.size)
    }

    @Test("in memory a body that is no small one is never copied while it grows")
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

    @Test("a body of one piece is not handed on, one byte more is")
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

    @Test("what comes while a piece waits fills the next one, and then has to wait; nothing of it is taken")
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

    @Test("another body begins with its own first piece, and nothing of the one before is left")
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

    @Test("a piece of more than its size stands alone")
    func large() {
        var spool = BodySpool(handsOn: true, limit: 64 << 20)
        #expect(take(Self.size + 1, of: 1, &spool) == .none)
        #expect(take(1, of: 2, &spool) == .handOn)
        #expect(spool.next()?.bytes.count == Self.size + 1)
    }
}
