import ControlTestSupport
import FreshetControl
import FreshetModel
import FreshetVarlink
import TestSupport
import Testing

@Suite("Base64")
struct Base64Tests {
    @Test(
        "Base64 matches the test vectors of RFC 4648, section 10",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func vectors(plain: String, text: String) {
        #expect(Base64.text(of: Array(plain.utf8)) == text)
        #expect(Base64.bytes(of: text) == Array(plain.utf8))
    }

    @Test("decoding returns the encoded bytes")
    func all() {
        let bytes = (0..<1024).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 / 256) }
        for count in [255, 256, 257, 1024] {
            let part = Array(bytes.prefix(count))
            #expect(Base64.bytes(of: Base64.text(of: part)) == part)
        }
    }

    @Test(
        "text with a wrong length, alphabet or padding is rejected",
        arguments: [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "Zm9v\n", "Zm-_", "Zmü=",
        ])
    func strays(text: String) {
        #expect(Base64.bytes(of: text) == nil)
    }
}

@Suite(.serialized, .hangLimit) struct GenerationsTests {
    private let old = PastGeneration(
        number: 2, committedAt: 5, size: 3, digest: "cd", causes: [SignalCount("timer", count: 2)], durationUSec: 7,
        kept: false)
    private let current = PastGeneration(number: 3, committedAt: 9, size: 4, digest: "ab", current: true)

    @Test("the history reaches the client unchanged, up to the requested limit")
    func history() async throws {
        let service = ScriptedService()
        let (old, current) = (old, current)
        service.change { $0.history = [current, old] }
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try ControlClient(path: path)
            #expect(try client.history(of: "jwks").generations == [current, old])
            #expect(try client.history(of: "jwks", limit: 1).generations == [current])
            #expect(throws: ControlClient.Failure.refused(.invalidParameter("limit"))) {
                try client.history(of: "jwks", limit: 0)
            }
            #expect(throws: ControlClient.Failure.refused(.noSuchPipeline(name: "jkws", suggestion: "jwks"))) {
                try client.history(of: "jkws")
            }
        }
    }

    @Test("content with any bytes is sent in several replies, and only to clients that accept several replies")
    func content() async throws {
        let limit = ControlDispatcher.contentPerReply
        let sizes = [0, 1, limit, limit + 1, 3 * limit]
        let service = ScriptedService()
        service.change { script in
            for (number, size) in sizes.enumerated() {
                script.contents[Int64(number)] = (0..<size).map { UInt8(truncatingIfNeeded: $0 * 31) }
            }
        }
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try ControlClient(path: path)
            for (number, size) in sizes.enumerated() {
                var bytes: [UInt8] = []
                var replies = 0
                try client.read(Int64(number), of: "jwks") { piece in
                    bytes += piece
                    replies += 1
                    return true
                }
                #expect(bytes == (0..<size).map { UInt8(truncatingIfNeeded: $0 * 31) })
                #expect(replies == max(1, (size + limit - 1) / limit))
            }
            let refusal = ControlError.noSuchGeneration(name: "jwks", number: 9, kept: [])
            #expect(throws: ControlClient.Failure.refused(refusal)) { try client.read(9, of: "jwks") { _ in true } }
            let plain = try VarlinkClient(path: path)
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try plain.call(
                    ControlInterface.name + ".ReadGeneration",
                    VarlinkParameters(encoding: ControlMessage.Numbered(name: "jwks", number: 1)))
            }
        }
    }

    @Test("a reader may end the stream before the last piece")
    func enough() async throws {
        let service = ScriptedService()
        service.change { $0.contents[1] = [UInt8](repeating: 7, count: 5 * ControlDispatcher.contentPerReply) }
        try await withControlServer(service) { path in
            var pieces = 0
            try ControlClient(path: path).read(1, of: "jwks") { _ in
                pieces += 1
                return pieces < 2
            }
            #expect(pieces == 2)
        }
    }

    @Test(
        "errors reach the client unchanged",
        arguments: [
            ControlError.noSuchGeneration(name: "jwks", number: 4, kept: [2, 3]),
            .noSuchGeneration(name: "jwks", number: nil, kept: []), .damagedGeneration(name: "jwks", number: 2),
            .invalidPipeline(name: "jwks"), .failed(name: "jwks", reason: "no free space"),
            .notReadable(name: "jwks", number: 2), .pinned(name: "jwks", number: 3),
        ])
    func errors(error: ControlError) async throws {
        #expect(ControlError(error.reply) == error)
        let service = ScriptedService()
        service.change { $0.rollback = .failure(error) }
        try await withControlServer(service) { path in
            #expect(throws: ControlClient.Failure.refused(error)) { try ControlClient(path: path).rollBack("jwks") }
        }
    }
}
