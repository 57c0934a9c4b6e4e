/// A generation of a pipeline, kept or removed.
package struct PastGeneration: Codable, Hashable, Sendable {
    package var number: Int64
    package var committedAt: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// The causes of the run that committed it; nil: not known.
    package var causes: String?
    /// How long that run took; nil: not known.
    package var durationUSec: Int64?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// Whether its content is kept.
    package var kept: Bool
    /// Whether readers see it.
    package var current: Bool
    /// True if readers would see it if it were not past its maximum age.
    package var withdrawn: Bool?

    package init(
        number: Int64, committedAt: Int64, size: Int64, digest: String, causes: String? = nil,
        durationUSec: Int64? = nil, truncated: Bool? = nil, kept: Bool = true, current: Bool = false,
        withdrawn: Bool? = nil
    ) {
        self.withdrawn = withdrawn
        self.number = number
        self.committedAt = committedAt
        self.size = size
        self.digest = digest
        self.causes = causes
        self.durationUSec = durationUSec
        self.truncated = truncated
        self.kept = kept
        self.current = current
    }
}

extension ControlMessage {
    package struct History: Codable, Hashable, Sendable {
        package var name: String
        package var limit: Int64?
    }

    package struct PastGenerations: Codable, Hashable, Sendable {
        /// Newest first.
        package var generations: [PastGeneration]
        /// The path of an item's key, such as `.id`; nil: no key is configured.
        package var key: String?

        package init(generations: [PastGeneration], key: String? = nil) {
            self.generations = generations
            self.key = key
        }
    }

    /// Parameters of `ReadGeneration` and `Rollback`, and of the errors `DamagedGeneration`, `NotReadable` and
    /// `Pinned`.
    package struct Numbered: Codable, Hashable, Sendable {
        package var name: String
        package var number: Int64?

        package init(name: String, number: Int64? = nil) {
            self.name = name
            self.number = number
        }
    }

    /// A reply of `ReadGeneration`.
    package struct Content: Codable, Hashable, Sendable {
        /// The next bytes, in Base64.
        package var data: String
    }

    /// The reply of `Rollback` and `Accept`.
    package struct RolledBack: Codable, Hashable, Sendable {
        /// The generation that readers see now.
        package var generation: GenerationStatus
        /// The number of the generation that readers saw before; nil: no generation, or the same.
        package var replaced: Int64?

        package init(generation: GenerationStatus, replaced: Int64? = nil) {
            self.generation = generation
            self.replaced = replaced
        }
    }

    /// Parameters of `Accept`, and of the error `OtherCandidate`.
    package struct Candidate: Codable, Hashable, Sendable {
        package var name: String
        /// The digest, or its beginning.
        package var digest: String?
    }

    /// The reply of `Pin` and `Unpin`.
    package struct Pinned: Codable, Hashable, Sendable {
        /// The current generation; nil only for `Unpin`: nothing is published.
        package var generation: GenerationStatus?
        /// Whether the call changed anything.
        package var changed: Bool

        package init(generation: GenerationStatus?, changed: Bool) {
            self.generation = generation
            self.changed = changed
        }
    }

    /// Parameters of `NoSuchGeneration`.
    package struct NoSuchGeneration: Codable, Hashable, Sendable {
        package var name: String
        package var number: Int64?
        package var kept: [Int64]
    }
}
