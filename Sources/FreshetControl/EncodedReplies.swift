import FreshetVarlink
import Synchronization

/// A value of a reply that knows whether all its texts are ASCII.
protocol TextChecking {
    var isASCII: Bool { get }
}

extension String: TextChecking {
    /// Each call checks the texts of its reply, so the bytes are checked together, without a branch for each.
    var isASCII: Bool {
        utf8.withContiguousStorageIfAvailable { bytes in bytes.reduce(0) { $0 | $1 } < 0x80 }
            ?? utf8.allSatisfy { $0 < 0x80 }
    }
}

extension Optional: TextChecking where Wrapped: TextChecking {
    var isASCII: Bool { map(\.isASCII) ?? true }
}

extension ControlMessage.Generation: TextChecking {
    var isASCII: Bool {
        generation.path.isASCII && generation.mediaType.isASCII && generation.directory.isASCII
            && generation.comment.isASCII && generation.digest.isASCII
    }
}

extension ControlMessage.Daemon: TextChecking {
    /// False also with an error of the configuration, which is rare and may quote any text.
    var isASCII: Bool {
        daemon.network.isASCII && daemon.version.isASCII && daemon.refusedReload == nil && daemon.invalidHooks == nil
            && (daemon.slowJobs ?? []).allSatisfy(\.job.isASCII)
    }
}

/// The last replies with values of a type as JSON, so that a program which asks again and again costs no encoding until
/// the value changes.
final class EncodedReplies<Value: Encodable & Hashable & Sendable & TextChecking>: Sendable {
    /// The most subjects whose replies are kept: some hundred kilobytes. With more, all are encoded again.
    static var limit: Int { 256 }

    private struct Entry {
        var value: Value
        var reply: VarlinkParameters
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// The reply with this value.
    ///
    /// Texts besides ASCII may be equal and have different bytes, also to a text of ASCII (the Kelvin sign and K). So a
    /// reply with such texts is encoded each time, and not kept.
    ///
    /// - Parameter subject: what the value describes, such as the name of a pipeline.
    /// - Throws: `EncodingError` if JSON cannot represent the value.
    func reply(with value: Value, about subject: String) throws -> VarlinkParameters {
        let isASCII = value.isASCII
        if isASCII, let entry = entries.withLock({ $0[subject] }), entry.value == value { return entry.reply }
        let reply = try VarlinkParameters(encoding: value)
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[subject] == nil { entries.removeAll() }
            entries[subject] = isASCII ? Entry(value: value, reply: reply) : nil
        }
        return reply
    }
}
