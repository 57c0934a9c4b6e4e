import Synchronization
import Testing

@testable import FreshetControl
@testable import FreshetVarlink

@Suite("Replies that are kept encoded")
struct EncodedRepliesTests {
    /// Counts how often it is encoded. Equality ignores the counter.
    private struct Counted: Encodable, Hashable, Sendable, TextChecking {
        final class Counter: Sendable {
            private let encodings = Mutex(0)
            var value: Int { encodings.withLock { $0 } }
            func increment() { encodings.withLock { $0 += 1 } }
        }

        var number: Int
        var counter: Counter
        var isASCII: Bool { true }

        static func == (left: Counted, right: Counted) -> Bool { left.number == right.number }
        func hash(into hasher: inout Hasher) { hasher.combine(number) }

        func encode(to encoder: any Encoder) throws {
            counter.increment()
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(number, forKey: .number)
        }

        private enum Key: CodingKey { case number }
    }

    @Test("the same value is encoded once, and a changed value again")
    func change() throws {
        let replies = EncodedReplies<Counted>()
        let counter = Counted.Counter()
        for (number, encodings) in [(1, 1), (1, 1), (2, 2), (2, 2), (1, 3)] {
            let reply = try replies.reply(with: Counted(number: number, counter: counter), about: "a")
            #expect(String(decoding: reply.json, as: UTF8.self) == #"{"number":\#(number)}"#)
            #expect(counter.value == encodings)
        }
    }

    @Test("a value whose text has another normalization has another reply")
    func normalization() throws {
        let replies = EncodedReplies<ControlMessage.Generation>()
        // The last three pairs are the characters besides ASCII that are equal to one of ASCII.
        for text in [
            "\u{E9}", "e\u{301}", "e\u{301}", "\u{E9}", "e", "K", "\u{212A}", "K", ";", "\u{37E}", ";", "`", "\u{1FEF}",
        ] {
            // Each part has its own subject, so that only the text differs from the reply before.
            let parts: [WritableKeyPath<GenerationStatus, String?>] = [\.comment, \.mediaType, \.directory]
            for (index, part) in parts.enumerated() {
                var status = GenerationStatus(number: 1, size: 1, digest: "ab", committedAt: 1, path: "/a")
                status[keyPath: part] = text
                let value = ControlMessage.Generation(generation: status)
                #expect(
                    try replies.reply(with: value, about: "\(index)").json == VarlinkParameters(encoding: value).json)
            }
            let value = ControlMessage.Generation(
                generation: GenerationStatus(number: 1, size: 1, digest: "ab", committedAt: 1, path: text))
            #expect(try replies.reply(with: value, about: "path").json == VarlinkParameters(encoding: value).json)
        }
    }

    @Test("the status of a daemon whose network has a name besides ASCII is exact")
    func daemon() throws {
        let replies = EncodedReplies<ControlMessage.Daemon>()
        for network in ["via K", "via \u{212A}", "via K"] {
            let value = ControlMessage.Daemon(
                daemon: DaemonStatus(
                    version: "1", pid: 1, since: 1, network: network, networkReachable: true,
                    pipelines: PipelineCounts())
            )
            #expect(try replies.reply(with: value, about: "").json == VarlinkParameters(encoding: value).json)
        }
    }

    @Test("each subject has its own reply")
    func subjects() throws {
        let replies = EncodedReplies<Counted>()
        let counter = Counted.Counter()
        for _ in 0..<2 {
            for number in 0..<3 {
                let reply = try replies.reply(with: Counted(number: number, counter: counter), about: "\(number)")
                #expect(String(decoding: reply.json, as: UTF8.self) == #"{"number":\#(number)}"#)
            }
        }
        #expect(counter.value == 3)
    }

    @Test("very many subjects do not fill the memory, and their replies are still right")
    func bounded() throws {
        let replies = EncodedReplies<Counted>()
        let counter = Counted.Counter()
        for number in 0...EncodedReplies<Counted>.limit {
            let reply = try replies.reply(with: Counted(number: number, counter: counter), about: "\(number)")
            #expect(String(decoding: reply.json, as: UTF8.self) == #"{"number":\#(number)}"#)
        }
        // The first reply was dropped when the limit was reached.
        _ = try replies.reply(with: Counted(number: 0, counter: counter), about: "0")
        #expect(counter.value == EncodedReplies<Counted>.limit + 2)
    }
}
