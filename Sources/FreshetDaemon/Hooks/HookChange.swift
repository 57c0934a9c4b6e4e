import FreshetCache
import FreshetControl
import FreshetPipelines

/// What a hook is told, as JSON: docs/hooks.md has it for people. Instants are microseconds since 1970 by the wall clock.
struct HookChange: Codable, Hashable, Sendable {
    /// One of the two generations.
    struct Version: Codable, Hashable, Sendable {
        var number: Int64
        /// SHA-256 in lower-case hexadecimal digits.
        var digest: String
        /// Bytes; nil: not known any more.
        var size: Int64?
        var committedAt: Int64?
        /// Where its content is; nil: it is not kept any more.
        var path: String?
        /// Of several files that readers see: the link to the directory that has them.
        var directory: String?
    }

    struct Difference: Codable, Hashable, Sendable {
        /// How many bytes more there are than before; negative: fewer.
        var bytes: Int64
        /// Of a JSON list whose items have keys (`cache.key`).
        var items: ContentDifference.Items?
        /// Of other JSON: the whole, and the members that differ.
        var changes: [ContentDifference.Change]?
        /// Of text: the unified format of diff(1); not all of it if `isCut`.
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
    /// When the hook was started.
    var time: Int64
    /// Counted from 1 for each generation.
    var attempt: Int64
    /// Why there is another generation, such as `network (2), timer`, or `rollback`; nil: not known any more.
    var causes: String?
    /// What readers see; nil, which is written as null: they find nothing any more, since the copy is withdrawn.
    @Nullable var current: Version?
    /// What the hook was told of last; nil: nothing yet, or that readers find nothing.
    var previous: Version?
    /// Nil if there was nothing before, or its size is not known any more. Only its bytes if one of the contents is not kept
    /// any more, or is too large to be compared.
    var difference: Difference?

    init(_ order: HookMachine.Order, told: (generation: FreshetCache.PastGeneration, path: String?)?, time: Int64) {
        pipeline = order.pipeline
        self.time = time
        attempt = Int64(order.attempt)
        let generation = order.generation
        let isWithdrawn = generation.mark.isWithdrawn
        causes = isWithdrawn ? "withdrawn" : order.causes
        current =
            isWithdrawn
            ? nil
            : Version(
                number: Int64(clamping: generation.number), digest: generation.digest,
                size: Int64(clamping: generation.size), committedAt: generation.committedAt, path: generation.path,
                directory: generation.directory)
        previous = order.told.flatMap { $0.isWithdrawn ? nil : $0 }.map { mark in
            Version(
                number: Int64(clamping: mark.number), digest: mark.digest, size: told?.generation.size,
                committedAt: told?.generation.committedAt.microseconds, path: told?.path)
        }
        guard !isWithdrawn, order.told?.isWithdrawn == false else { return }
        difference = told.map { Difference(bytes: Int64(clamping: generation.size) - $0.generation.size) }
    }

    var text: String { ControlJSON.text(of: self) + "\n" }
}

/// A member that is there also if it has no value: null.
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
