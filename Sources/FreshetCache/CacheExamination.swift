/// Something of the cache that is not as it was committed.
package struct CacheFinding: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The index does not hold together; the detail is SQLite's word on it.
        case indexDamaged
        /// There is no file where readers look for the current generation.
        case copyMissing
        /// What readers find is not the current generation, or there is none that they should find.
        case copyDamaged
        /// The copy has its content, but is not the file of its generation: it takes the room twice.
        case copyApart
        /// The file of a generation has other content, or is no file.
        case contentDamaged
        /// The file of a generation is gone.
        case contentMissing
        /// A file with the name of a generation that the index does not know.
        case contentUnknown
        /// What a check refused, and is kept aside, has other content, or is gone.
        case refusedDamaged
        /// Of several files: the link does not lead to the directory of the current generation, or that has not its files.
        case setDamaged
        /// The pinned generation is gone; nothing takes its place until it is unpinned.
        case pinLost
        /// What a commit that did not come to its end has left.
        case unfinished
        /// What the cache did not put there.
        case stray
    }

    package var kind: Kind
    /// Nil: it is no pipeline's.
    package var pipeline: String?
    package var generation: Int64?
    package var path: String
    /// What more there is to say of it, or why it could not be mended.
    package var detail: String?
    package var isMended = false

    init(_ kind: Kind, of pipeline: String? = nil, generation: Int64? = nil, path: String, detail: String? = nil) {
        self.kind = kind
        self.pipeline = pipeline
        self.generation = generation
        self.path = path
        self.detail = detail
    }

    /// The same trouble, whatever became of it.
    func isSame(as other: CacheFinding) -> Bool { kind == other.kind && path == other.path }
}

/// What came of looking at a part of the cache.
package struct CacheExamination: Hashable, Sendable {
    package var findings: [CacheFinding] = []
    /// Generations whose content was read.
    package var generations = 0
    /// Of that content.
    package var bytes: Int64 = 0
    /// What the pipeline offers since something of it was mended; nil: nothing was, or nothing is offered.
    package var offered: Generation?
    /// Something was mended, and the pipeline offers nothing any more.
    package var isLost = false
    /// Findings beyond ``CacheLimits/findings``, which are neither named nor mended.
    package var unnamed = 0

    mutating func add(_ finding: CacheFinding) {
        if findings.count < CacheLimits.findings { findings.append(finding) } else { unnamed += 1 }
    }

    /// Notes of each finding whether it is there no more, and what has come of the others.
    mutating func note(left: CacheExamination) {
        unnamed = 0
        for index in findings.indices where !left.findings.contains(where: findings[index].isSame(as:)) {
            findings[index].isMended = true
        }
        let known = findings
        for finding in left.findings where !known.contains(where: finding.isSame(as:)) { add(finding) }
        unnamed += left.unnamed
    }
}
