/// A generation that there is, or was.
package struct PastGeneration: Codable, Hashable, Sendable {
    package var number: Int64
    package var committedAt: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// What the run was for that made it; nil: not known.
    package var causes: String?
    /// How long that run took; nil: not known.
    package var durationUSec: Int64?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// Its content is still there.
    package var kept: Bool
    /// It is what readers see.
    package var current: Bool
    /// True if it is what readers would see if it were not too old.
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

        package init(name: String, limit: Int64? = nil) {
            self.name = name
            self.limit = limit
        }
    }

    package struct PastGenerations: Codable, Hashable, Sendable {
        /// Newest first.
        package var generations: [PastGeneration]
        /// Where an item's key is, such as `.id`; nil: nothing is configured.
        package var key: String?

        package init(generations: [PastGeneration], key: String? = nil) {
            self.generations = generations
            self.key = key
        }
    }

    /// Parameters of `ReadGeneration` and `Rollback`, and of the errors `DamagedGeneration`, `NotReadable` and `Pinned`.
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
        package init(data: String) { self.data = data }
    }

    /// The reply of `Rollback` and `Accept`.
    package struct RolledBack: Codable, Hashable, Sendable {
        /// What readers see now.
        package var generation: GenerationStatus
        /// What they saw before; nil: nothing, or the same.
        package var replaced: Int64?

        package init(generation: GenerationStatus, replaced: Int64? = nil) {
            self.generation = generation
            self.replaced = replaced
        }
    }

    /// Parameters of `Accept`, and of the error `OtherCandidate`.
    package struct Candidate: Codable, Hashable, Sendable {
        package var name: String
        /// Or how it begins.
        package var digest: String?

        package init(name: String, digest: String? = nil) {
            self.name = name
            self.digest = digest
        }
    }

    /// The reply of `Pin` and `Unpin`.
    package struct Pinned: Codable, Hashable, Sendable {
        /// Nil for `Unpin` alone: nothing is offered.
        package var generation: GenerationStatus?
        /// False: it was so already.
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

        package init(name: String, number: Int64?, kept: [Int64]) {
            self.name = name
            self.number = number
            self.kept = kept
        }
    }
}
