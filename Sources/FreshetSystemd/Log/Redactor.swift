import Synchronization

/// Takes known secrets out of texts, wherever they stand, and then what ``Redaction`` takes out of URLs.
///
/// An origin may send back what it was sent: in the name of a host to which it redirects, in a body that a message
/// quotes. So each text that is shown and may hold words from elsewhere goes through here: the log handler does so with
/// each value, and the daemon with the message of each failure.
///
/// Safe to call from any thread.
public final class Redactor: Sendable {
    /// The least of a secret, in bytes, that is taken for it. Its beginning is enough, since messages are cut; what is
    /// shorter would be found in ordinary words, and its absence would tell what it is.
    public static let shortest = 8
    /// What stands in a secret's place.
    public static let mask = "***"

    private struct Secrets {
        /// In lower case, since the name of a host is, by their first eight bytes.
        var byBeginning: [UInt64: [[UInt8]]] = [:]
        var texts: Set<String> = []
        var before: Set<String> = []
    }
    private let secrets = Mutex(Secrets())

    public init() {}

    /// Knows these secrets from now on, and those of the call before: what was asked with them may still be under way.
    public func know(_ texts: Set<String>) {
        secrets.withLock { secrets in
            secrets.before = secrets.texts
            secrets.texts = texts
            var all: Set<[UInt8]> = []
            for text in secrets.texts.union(secrets.before) {
                all.insert(Self.lowered(text.utf8))
                all.insert(Self.lowered(Self.percentEncoded(text)))
            }
            secrets.byBeginning = [:]
            for secret in all where secret.count >= Self.shortest {
                let beginning = secret.prefix(Self.shortest).reduce(0) { $0 << 8 | UInt64($1) }
                secrets.byBeginning[beginning, default: []].append(secret)
            }
        }
    }

    /// The text without secrets.
    public func text(_ text: String) -> String {
        let known = secrets.withLock { $0.byBeginning }
        guard !known.isEmpty, text.utf8.count >= Self.shortest else { return Redaction.text(text) }
        return Redaction.text(Self.masked(text, known))
    }

    private static func masked(_ text: String, _ known: [UInt64: [[UInt8]]]) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var shown = 0
        var window: UInt64 = 0
        var index = 0
        while index < bytes.count {
            window = window << 8 | UInt64(lowered(bytes[index]))
            index += 1
            let start = index - shortest
            guard start >= shown, let candidates = known[window] else { continue }
            let end =
                candidates.map { secret in
                    var end = index
                    while end < bytes.count, end - start < secret.count, lowered(bytes[end]) == secret[end - start] {
                        end += 1
                    }
                    return end
                }.max() ?? index
            result += bytes[shown..<start]
            result += mask.utf8
            (shown, index) = (end, end)
        }
        guard shown > 0 else { return text }
        // Secrets are ASCII as a rule; a cut through another character leaves U+FFFD.
        return String(decoding: result + bytes[shown...], as: UTF8.self)
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    private static func lowered(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.map(lowered) }

    /// As a URL holds it: all but the unreserved characters (RFC 3986, 2.3).
    private static func percentEncoded(_ text: String) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return text.utf8.flatMap { byte -> [UInt8] in
            switch lowered(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                [byte]
            default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}
