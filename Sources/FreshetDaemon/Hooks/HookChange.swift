import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines

/// The JSON input of a hook, documented in docs/hooks.md. Instants are wall-clock microseconds since 1970.
struct HookChange: Codable, Hashable, Sendable {
    /// The current or the previous generation.
    struct Version: Codable, Hashable, Sendable {
        var number: Int64
        /// SHA-256 in lower-case hexadecimal digits.
        var digest: String
        /// The size in bytes; nil: unknown.
        var size: Int64?
        var committedAt: Int64?
        /// The path of the content; nil: the content is not kept any more.
        var path: String?
        /// If readers see several files: the link to their directory.
        var directory: String?
    }

    struct Difference: Codable, Hashable, Sendable {
        /// The growth of the content in bytes; negative if it has become smaller.
        var bytes: Int64
        /// The changes of a JSON list whose items have keys (`cache.key`).
        var items: ContentDifference.Items?
        /// The changes of other JSON: of the whole, and of the members that differ.
        var changes: [ContentDifference.Change]?
        /// The changes of text, in the unified format of diff(1); incomplete if `isCut` is true.
        var lines: [String]?
        var isCut: Bool?

        mutating func take(_ content: ContentDifference) {
            items = content.items
            changes = content.changes
            lines = content.lines
            isCut = content.isCut
        }
    }

    var pipeline: String
    /// When the hook started.
    var time: Int64
    /// The number of the attempt, from 1 for each generation.
    var attempt: Int64
    /// The causes of the new generation, such as `network (2), timer`, or `rollback`; nil: unknown.
    var causes: String?
    /// The current generation; nil, written as null: the copy is withdrawn, and readers find no file.
    @Nullable var current: Version?
    /// The generation of the hook's last successful run; nil: there was no such run, or the copy was withdrawn then.
    var previous: Version?
    /// The change since `previous`; nil if there is no previous generation or its size is unknown. It has only `bytes`
    /// if one of the contents is not kept any more, or is too large to be compared.
    var difference: Difference?

    init(_ order: HookMachine.Order, notified: (generation: FreshetCache.PastGeneration, path: String?)?, time: Int64) {
        pipeline = order.pipeline
        self.time = time
        attempt = Int64(order.attempt)
        let generation = order.generation
        let isWithdrawn = generation.identity.isWithdrawn
        causes = isWithdrawn ? "withdrawn" : order.causes
        current =
            isWithdrawn
            ? nil
            : Version(
                number: Int64(clamping: generation.number), digest: generation.digest.description,
                size: Int64(clamping: generation.size), committedAt: generation.committedAt.microseconds,
                path: generation.path,
                directory: generation.directory)
        previous = order.notified.flatMap { $0.isWithdrawn ? nil : $0 }.map { identity in
            Version(
                number: Int64(clamping: identity.number), digest: identity.digest.description,
                size: notified?.generation.size,
                committedAt: notified?.generation.committedAt.microseconds, path: notified?.path)
        }
        guard !isWithdrawn, order.notified?.isWithdrawn == false else { return }
        difference = notified.map { Difference(bytes: Int64(clamping: generation.size) - $0.generation.size) }
    }

    var text: String { ControlJSON.text(of: self) + "\n" }

    /// The change without the details of the difference, which only has `bytes` then.
    func withoutDetails() -> HookChange {
        var change = self
        change.difference = difference.map { Difference(bytes: $0.bytes) }
        return change
    }

    var hasDetails: Bool { difference?.items != nil || difference?.changes != nil || difference?.lines != nil }
}

/// A member that is encoded as null if it has no value.
@propertyWrapper
struct Nullable<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    var wrappedValue: Value?

    init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}
