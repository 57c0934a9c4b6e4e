/// The files in the cache of a pipeline that is not configured any more.
package struct UnownedPipeline: Codable, Hashable, Sendable {
    package var name: String
    /// The path of its published file below `current/`; nil: no file is published.
    package var file: String?
    /// The number of kept generations.
    package var generations: Int64
    /// The bytes of all its content.
    package var bytes: Int64
    /// When the newest generation was committed, in microseconds since 1970; nil: no generation.
    package var committedAt: Int64?

    package init(name: String, file: String? = nil, generations: Int64, bytes: Int64, committedAt: Int64? = nil) {
        self.name = name
        self.file = file
        self.generations = generations
        self.bytes = bytes
        self.committedAt = committedAt
    }
}

/// A pipeline of which some files could not be removed, and why.
package struct UnprunedPipeline: Codable, Hashable, Sendable {
    package var name: String
    /// One sentence.
    package var reason: String

    package init(name: String, reason: String) {
        self.name = name
        self.reason = reason
    }
}

extension ControlMessage {
    /// The reply of `ListUnowned`.
    package struct Unowned: Codable, Hashable, Sendable {
        package var pipelines: [UnownedPipeline]
        package init(pipelines: [UnownedPipeline]) { self.pipelines = pipelines }
    }

    /// The reply of `Prune`.
    package struct Pruned: Codable, Hashable, Sendable {
        /// The removed pipelines.
        package var pipelines: [UnownedPipeline]
        /// The pipelines of which some files are left. Earlier daemons do not send this.
        package var failed: [UnprunedPipeline]

        package init(pipelines: [UnownedPipeline] = [], failed: [UnprunedPipeline] = []) {
            self.pipelines = pipelines
            self.failed = failed
        }

        package init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            pipelines = try values.decode([UnownedPipeline].self, forKey: .pipelines)
            failed = try values.decodeIfPresent([UnprunedPipeline].self, forKey: .failed) ?? []
        }
    }

    package struct Prune: Codable, Hashable, Sendable {
        package var names: [String]
    }
}
