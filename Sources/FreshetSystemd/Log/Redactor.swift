import Synchronization

/// Removes known secrets from texts, and then the parts of URLs that ``Redaction`` removes.
///
/// An origin may echo a request: in the host name of a redirect, in a body that a message quotes. So every displayed
/// text that may contain external words is redacted: the log handler redacts each value, and the daemon redacts the
/// message of each failure.
///
/// It may be used from any thread.
public final class Redactor: Sendable {
    /// The minimum length of a secret in bytes. The beginning of a secret is enough to match, because messages are
    /// truncated. A shorter secret would match ordinary words, and its absence from the text would reveal it.
    public static let shortest = 8
    /// The replacement of a secret.
    public static let mask = "***"

    /// The most keys of secrets that are set one by one.
    static let mostKeys = 4_096

    private struct Secrets {
        /// By their first eight bytes, in lower case, because host names are in lower case.
        var byBeginning: [UInt64: [[UInt8]]] = [:]
        /// Bytes, because two texts that Swift compares as equal may have different ones.
        var texts: Set<[UInt8]> = []
        var previous: Set<[UInt8]> = []
        /// The secrets that were read or issued later, with those before them, by their keys.
        var renewed: [String: (now: Set<[UInt8]>, before: Set<[UInt8]>)] = [:]

        mutating func rebuild() {
            var all: Set<[UInt8]> = []
            for text in renewed.values.reduce(texts.union(previous), { $0.union($1.now).union($1.before) }) {
                all.insert(Redactor.lowered(text))
                all.insert(Redactor.lowered(Redactor.percentEncoded(text)))
            }
            byBeginning = [:]
            for secret in all where secret.count >= Redactor.shortest {
                let beginning = secret.prefix(Redactor.shortest).reduce(0) { $0 << 8 | UInt64($1) }
                byBeginning[beginning, default: []].append(secret)
            }
        }
    }
    private let secrets = Mutex(Secrets())

    public init() {}

    /// Sets the secrets. The secrets of the previous call are still removed: requests with them may be in progress.
    public func setSecrets(_ texts: Set<String>) {
        secrets.withLock { secrets in
            secrets.previous = secrets.texts
            secrets.texts = Set(texts.map { Array($0.utf8) })
            secrets.rebuild()
        }
    }

    /// Sets the secrets of one key, such as of a file that is read again, besides those of ``setSecrets(_:)``. The
    /// secrets of the key's previous call are still removed.
    public func setSecrets(_ texts: Set<String>, of key: String) {
        let texts = Set(texts.map { Array($0.utf8) })
        secrets.withLock { secrets in
            let before = secrets.renewed[key]?.now ?? []
            guard before != texts else { return }
            // More keys than any configuration has; the secrets of configured credentials are set again at a reload.
            if secrets.renewed.count >= Self.mostKeys { secrets.renewed = [:] }
            secrets.renewed[key] = (texts, before)
            secrets.rebuild()
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
        // Secrets are usually ASCII; a cut through another character leaves U+FFFD.
        return String(decoding: result + bytes[shown...], as: UTF8.self)
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    private static func lowered(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.map(lowered) }

    /// The text as it is encoded in a URL: all but the unreserved characters (RFC 3986, 2.3).
    private static func percentEncoded(_ text: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return text.flatMap { byte -> [UInt8] in
            switch lowered(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                [byte]
            default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}
