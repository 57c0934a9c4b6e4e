import FreshetVarlink
import Synchronization

/// The last replies with values of a type as JSON, so that a program which asks again and again costs no encoding until
/// the value changes.
final class EncodedReplies<Value: Encodable & Hashable & Sendable>: Sendable {
    /// The most subjects whose replies are kept: some hundred kilobytes. With more, all are encoded again.
    static var limit: Int { 256 }

    private struct Entry {
        var value: Value
        var reply: VarlinkParameters
        /// Texts besides ASCII may be equal and have different bytes, so a reply with such texts is encoded each time.
        /// (The three characters besides ASCII that are equal to one of ASCII are not worth an encoding of each reply:
        /// the Kelvin sign, the Greek question mark and the Greek varia.)
        var isReusable: Bool
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// The reply with this value.
    ///
    /// - Parameter subject: what the value describes, such as the name of a pipeline.
    /// - Throws: `EncodingError` if JSON cannot represent the value.
    func reply(with value: Value, about subject: String) throws -> VarlinkParameters {
        if let entry = entries.withLock({ $0[subject] }), entry.isReusable, entry.value == value {
            return entry.reply
        }
        let reply = try VarlinkParameters(encoding: value)
        let isASCII = reply.json.allSatisfy { $0 < 0x80 }
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[subject] == nil { entries.removeAll() }
            entries[subject] = Entry(value: value, reply: reply, isReusable: isASCII)
        }
        return reply
    }
}
