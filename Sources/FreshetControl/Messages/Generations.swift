/// A generation of a pipeline, kept or removed.
package struct PastGeneration: Codable, Hashable, Sendable {
    package var number: Int64
    package var committedAt: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// The causes of the run that committed it; nil: not known.
    package var causes: [SignalCount]?
    /// How long that run took; nil: not known.
    package var durationUSec: Int64?
    /// The mirror from which that run has the content, without user information and query; nil: there are no mirrors, or
    /// not known.
    package var mirror: String?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// Whether its content is kept.
    package var kept: Bool
    /// Whether readers see it.
    package var current: Bool
    /// True if readers would see it if it were not past its maximum age.
    package var withdrawn: Bool?

    /// The causes on one line, for people; nil: not known.
    package var causesText: String? { causes.map { $0.map(\.text).joined(separator: ", ") } }

    package init(
        number: Int64, committedAt: Int64, size: Int64, digest: String, causes: [SignalCount]? = nil,
        durationUSec: Int64? = nil, mirror: String? = nil, truncated: Bool? = nil, kept: Bool = true,
        current: Bool = false,
        withdrawn: Bool? = nil
    ) {
        self.withdrawn = withdrawn
        self.number = number
        self.committedAt = committedAt
        self.size = size
        self.digest = digest
        self.causes = causes
        self.durationUSec = durationUSec
        self.mirror = mirror
        self.truncated = truncated
        self.kept = kept
        self.current = current
    }
}

/// A cause of a run from before: its signal, and how often the signal fired.
package struct SignalCount: Codable, Hashable, Sendable {
    /// The signal's name; for a generation that no run committed, the way in which a user published it: `accept`;
    /// `repair` if it was recorded after its run had failed; `adopted` if it was found on the disk without
    /// the index.
    package var signal: String
    package var count: Int64

    package init(_ signal: String, count: Int64 = 1) {
        self.signal = signal
        self.count = count
    }

    /// The cause for people, such as `network (2)`.
    package var text: String { count == 1 ? signal : "\(signal) (\(count))" }
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
