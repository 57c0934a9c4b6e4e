import Glibc
import TestSupport
import Testing

@testable import FreshetVarlink

/// Tests with messages that are nearly valid: each gets a reply or closes the connection, and none causes a trap.
///
/// `FRESHET_SEEDS=7-7 Scripts/test only MutationTests` repeats the course with the seed of a failure.
@Suite(.serialized, .hangLimit) struct MutationTests {
    static let seeds: ClosedRange<UInt64> = {
        guard let text = getenv("FRESHET_SEEDS").map({ String(cString: $0) }) else { return 1...8 }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : 1...8
    }()
    /// Messages of one course.
    private static let count = 2_000

    private static let messages = [
        #"{"method":"org.example.test.Echo","parameters":{"text":"a\"b\\\/\b\f\n\r\t\u00e4\ud83d\ude00ä"}}"#,
        #"{"method":"org.example.test.Count","parameters":{"number":3},"more":true}"#,
        #"{"method":"org.example.test.Note","parameters":{"text":"n","at":{"x":1,"y":-2.5e10},"flag":null}}"#,
        #"{"method":"org.varlink.service.GetInfo","parameters":null,"more":false,"oneway":false}"#,
        #"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"org.example.test"}}"#,
        #" { "method" : "org.example.test.Note" , "parameters" : { "text" : "x" } , "oneway" : true } "#,
        #"{"method":"org.example.test.Echo","parameters":{"text":[[[[{"a":[true,false,null,0,-0.0,1E+9]}]]]]}}"#,
        #"{"method":"org.example.test.Count","parameters":{"number":9223372036854775808},"upgrade":false}"#,
    ].map { Array($0.utf8) }

    private static let pieces =
        [
            "{", "}", "[", "]", "\"", "\\", ",", ":", "\\u", "\\ud83d", "\\uDFFF", "null", "true", "1e999", "-", "0.",
            "00",
            "\"method\":\"a.B\"", "\"more\":true", "\"oneway\":true", "\"x\":{}", "{}", "\u{0}", "\u{1}", "\u{7F}",
            "\n",
            String(repeating: "[", count: 100), String(repeating: "{\"a\":", count: 70),
            String(repeating: "9", count: 400),
        ].map { Array($0.utf8) } + [
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82],
        ]

    /// A message with one to six changes.
    private func mutated(using random: inout SeededGenerator) -> [UInt8] {
        var bytes = Self.messages.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes.insert(contentsOf: Self.pieces.randomElement(using: &random) ?? [], at: place)
            case 1 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 2 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 3:
                let end = min(bytes.count, place + Int.random(in: 0..<12, using: &random))
                bytes.removeSubrange(place..<end)
            case 4:
                let end = min(bytes.count, place + Int.random(in: 0..<40, using: &random))
                bytes.insert(contentsOf: Array(bytes[place..<end]), at: place)
            default: bytes.removeLast(min(bytes.count, Int.random(in: 0..<6, using: &random)))
            }
        }
        return bytes
    }

    @Test("text that the scanner accepts is unambiguous JSON, and the ranges of its parts are right", arguments: seeds)
    func scanner(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<Self.count {
            let bytes = mutated(using: &random)
            guard let members = try? JSONScanner.members(of: bytes) else { continue }
            #expect(Set(members.map(\.name)).count == members.count, "seed \(seed), message \(round)")
            for member in members {
                #expect(bytes.indices.contains(member.value.lowerBound), "seed \(seed), message \(round)")
                #expect(
                    member.value.upperBound <= bytes.count && !member.value.isEmpty, "seed \(seed), message \(round)")
            }
            // An accepted call, encoded again, parses to an equal call.
            guard let call = try? VarlinkCallMessage(parsing: bytes) else { continue }
            let again = try? VarlinkCallMessage(parsing: call.encoded.dropLast())
            #expect(again == call, "seed \(seed), message \(round): \(String(decoding: bytes, as: UTF8.self))")
            // Decoding the parameters succeeds, or throws an error that names a parameter.
            _ = try? call.parameters.decode(as: Text.self)
            _ = try? call.parameters.decode(as: Number.self)
        }
    }

    @Test("a stream of such messages, split anywhere, is answered or closed, and never hangs", arguments: seeds)
    func connection(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let now = ContinuousClock.Instant.now
        for _ in 0..<Self.count / 10 {
            var machine = ConnectionStateMachine(messageLimit: 2_048, silence: .seconds(30), now: now)
            var all: [UInt8] = []
            for _ in 0..<8 { all += mutated(using: &random) + [0] }
            var stream = all[...]
            var outcomes = 0
            var isClosed = false
            while !isClosed {
                switch machine.next() {
                case .serve:
                    outcomes += 1
                    machine.callEnded(at: now)
                case .refuse: outcomes += 1
                case .close: isClosed = true
                case .read:
                    guard !stream.isEmpty else {
                        machine.receivedEnd()
                        continue
                    }
                    let piece = stream.prefix(Int.random(in: 1...300, using: &random))
                    machine.received(piece)
                    stream = stream.dropFirst(piece.count)
                }
            }
            // A NUL inside a message splits it into two messages.
            #expect(outcomes <= 8 * 13, "seed \(seed)")
        }
    }

    @Test("a real server answers or closes, and goes on serving others", arguments: seeds.prefix(3))
    func server(seed: UInt64) async throws {
        try await withServer { harness in
            var random = SeededGenerator(seed: seed)
            let steady = try harness.connect()
            for round in 0..<Self.count / 4 {
                let client = try harness.connect()
                client.send(mutated(using: &random) + [0])
                client.closeSendingSide()
                // Reads until the close: each call that is not oneway gets a reply first. A server that hangs fails.
                while try client.receive() != nil {}
                guard round.isMultiple(of: 50) else { continue }
                let answer = try steady.call(#"{"method":"org.example.test.Echo","parameters":{"text":"e"}}"#)
                #expect(answer == #"{"parameters":{"text":"e"}}"#, "seed \(seed), message \(round)")
            }
        }
    }
}
