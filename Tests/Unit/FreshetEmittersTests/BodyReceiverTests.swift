import Testing

@testable import FreshetEmitters

@Suite("The receiver of the bodies of a request")
struct BodyReceiverTests {
    private func receiver(maxBytes: UInt64, handsOn: Bool = false) -> BodyReceiver {
        let receiver = BodyReceiver(maxBytes: maxBytes, handsOn: handsOn) { _ in }
        receiver.beginHop()
        return receiver
    }

    private func receive(_ bytes: [UInt8], _ receiver: BodyReceiver) -> BodyReceiver.Action {
        bytes.withUnsafeBytes { receiver.receive($0) }
    }

    private func isTooLarge(_ action: BodyReceiver.Action) -> Bool {
        if case .end(.tooLarge(announced: nil)) = action { true } else { false }
    }

    @Test("a body may be as long as its limit, and not longer")
    func limit() throws {
        let receiver = receiver(maxBytes: 3)
        try receiver.expect(nil, coding: nil)
        guard case .goOn = receive([1, 2, 3], receiver) else {
            Issue.record("the limit itself")
            return
        }
        #expect(isTooLarge(receive([4], receiver)))
        #expect(receiver.spool.takeRest() == [1, 2, 3])
    }

    @Test("a body that is announced as too long is not received; the length of a compressed body does not count")
    func announced() throws {
        let receiver = receiver(maxBytes: 3)
        #expect(throws: TransferStop.self) { try receiver.expect(4, coding: nil) }
        try receiver.expect(3, coding: nil)
        #expect(receiver.expected == 3)
        receiver.restart()
        receiver.beginHop()
        try receiver.expect(4, coding: "gzip")
        #expect(receiver.expected == nil)
    }

    @Test("a compressed body is complete only at the end of its compression")
    func compressed() throws {
        let packed = try Gzip.compress(Array("hello".utf8))
        let receiver = receiver(maxBytes: 5)
        try receiver.expect(nil, coding: "gzip")
        _ = receive(Array(packed.dropLast()), receiver)
        #expect(!receiver.isComplete)
        _ = receive(Array(packed.suffix(1)), receiver)
        #expect(receiver.isComplete && receiver.spool.takeRest() == Array("hello".utf8))
    }

    @Test("many small pieces of a body yield the loop")
    func yields() throws {
        let receiver = receiver(maxBytes: 1 << 20)
        var turns = 0
        receiver.yieldTurn = { turns += 1 }
        try receiver.expect(nil, coding: nil)
        for _ in 0..<BodyReceiver.piecesPerTurn { _ = receive([1], receiver) }
        #expect(turns == 0 && !receiver.unpause())
        guard case .pause = receive([1], receiver) else {
            Issue.record("no pause")
            return
        }
        #expect(turns == 1 && receiver.spool.count == BodyReceiver.piecesPerTurn)
        #expect(receiver.unpause())
    }

    @Test("an unused body is read up to its own limit")
    func unused() {
        let receiver = receiver(maxBytes: 1)
        let piece = [UInt8](repeating: 0, count: 10)
        guard case .goOn = piece.withUnsafeBytes({ receiver.skip($0, upTo: 10) }) else {
            Issue.record("the limit itself")
            return
        }
        guard case .end(.uninteresting) = piece.withUnsafeBytes({ receiver.skip($0, upTo: 10) }) else {
            Issue.record("more than the limit")
            return
        }
    }
}
