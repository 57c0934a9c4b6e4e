/// What the cache has of a pipeline that is not configured any more.
package struct UnownedPipeline: Codable, Hashable, Sendable {
    package var name: String
    /// Its file below `current/`; nil: it has none.
    package var file: String?
    /// How many are kept.
    package var generations: Int64
    /// Of all content.
    package var bytes: Int64
    /// When the newest generation was committed, in microseconds since 1970; nil: there is none.
    package var committedAt: Int64?

    package init(name: String, file: String? = nil, generations: Int64, bytes: Int64, committedAt: Int64? = nil) {
        self.name = name
        self.file = file
        self.generations = generations
        self.bytes = bytes
        self.committedAt = committedAt
    }
}

extension ControlMessage {
    /// The reply of `ListUnowned` and of `Prune`.
    package struct Unowned: Codable, Hashable, Sendable {
        package var pipelines: [UnownedPipeline]
        package init(pipelines: [UnownedPipeline]) { self.pipelines = pipelines }
    }

    package struct Prune: Codable, Hashable, Sendable {
        package var names: [String]
        package init(names: [String]) { self.names = names }
    }
}
