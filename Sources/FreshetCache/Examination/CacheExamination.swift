package import FreshetModel

/// An error that an examination of the cache has found.
package struct CacheFinding: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The index is damaged; the detail is SQLite's message.
        case indexDamaged
        /// The published file of the current generation is missing.
        case copyMissing
        /// The published file is not the current generation, or there is a published file although there must not be
        /// one.
        case copyDamaged
        /// The copy has the right content, but is not a hard link to the file of its generation: it uses the space
        /// twice.
        case copyDuplicated
        /// The file of a generation has other content, or is not a regular file.
        case contentDamaged
        /// The file of a generation is missing.
        case contentMissing
        /// A file with the name of a generation that the index does not have.
        case contentUnknown
        /// The rejected content is missing or damaged.
        case rejectedDamaged
        /// Pipelines with several files: the link does not lead to the directory of the current generation, or the
        /// files in the directory are wrong.
        case setDamaged
        /// The pinned generation is missing; no content takes its place until it is unpinned.
        case pinLost
        /// A file that an interrupted commit has left.
        case unfinished
        /// A file that the cache did not make.
        case stray
    }

    package var kind: Kind
    /// Nil if the finding does not belong to a pipeline.
    package var pipeline: String?
    package var generation: Int64?
    package var path: String
    /// Details of the error, or why it could not be repaired.
    package var detail: String?
    package var isRepaired = false

    init(_ kind: Kind, of pipeline: String? = nil, generation: Int64? = nil, path: String, detail: String? = nil) {
        self.kind = kind
        self.pipeline = pipeline
        self.generation = generation
        self.path = path
        self.detail = detail
    }

    /// Whether this is the same error, repaired or not.
    func isSame(as other: CacheFinding) -> Bool { kind == other.kind && path == other.path }
}

/// The result of an examination of a part of the cache.
package struct CacheExamination: Hashable, Sendable {
    package var findings: [CacheFinding] = []
    /// The number of generations whose content was read.
    package var generations = 0
    /// The number of bytes that were read.
    package var bytes: Int64 = 0
    /// The current generation after a repair; nil: nothing was repaired, or there is no current generation.
    package var published: CurrentGeneration?
    /// The revision (``FreshetModel/CurrentGeneration/revision``) in which a repair left the pipeline without a current generation; nil:
    /// there is one, or nothing was repaired.
    package var lostRevision: UInt64?
    /// The number of findings beyond ``CacheLimits/findings``, which are neither listed nor repaired.
    package var unnamed = 0

    mutating func add(_ finding: CacheFinding) {
        if findings.count < CacheLimits.findings { findings.append(finding) } else { unnamed += 1 }
    }

    /// Marks findings as repaired that a second examination did not find any more, and adds its new findings.
    mutating func markRepaired(remaining left: CacheExamination) {
        unnamed = 0
        for index in findings.indices where !left.findings.contains(where: findings[index].isSame(as:)) {
            findings[index].isRepaired = true
        }
        let known = findings
        for finding in left.findings where !known.contains(where: finding.isSame(as:)) { add(finding) }
        unnamed += left.unnamed
    }
}
