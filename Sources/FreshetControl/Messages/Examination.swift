/// A difference between a part of the cache and its committed state.
package struct ExaminationFinding: Codable, Hashable, Sendable {
    package enum Kind: String, OpenEnumeration, Hashable, Sendable, CaseIterable {
        case indexDamaged, copyMissing, copyDamaged, copyDuplicated, contentDamaged, contentMissing, contentUnknown
        case rejectedDamaged, pinLost, unfinished, stray, setDamaged
        case unknown
    }

    package var kind: Kind
    /// Nil: the finding does not belong to a pipeline.
    package var pipeline: String?
    package var generation: Int64?
    package var path: String
    /// Details of the finding, or why it could not be repaired.
    package var detail: String?
    package var repaired: Bool

    package init(
        kind: Kind, pipeline: String? = nil, generation: Int64? = nil, path: String, detail: String? = nil,
        repaired: Bool = false
    ) {
        self.kind = kind
        self.pipeline = pipeline
        self.generation = generation
        self.path = path
        self.detail = detail
        self.repaired = repaired
    }
}

/// A part of the cache that is examined in one step.
package enum ExaminationStep: Hashable, Sendable {
    case index
    /// Files that do not belong to a pipeline.
    case strays
    case pipeline(String)
}

extension ControlMessage {
    package struct Examine: Codable, Hashable, Sendable {
        package var repair: Bool?
        package init(repair: Bool? = nil) { self.repair = repair }
    }

    /// A reply of `Examine`: the findings since the previous reply, and how much was examined.
    package struct Examined: Codable, Hashable, Sendable {
        package var findings: [ExaminationFinding] = []
        package var pipelines: Int64 = 0
        /// The generations whose content was read.
        package var generations: Int64 = 0
        /// The bytes of that content.
        package var bytes: Int64 = 0
        /// The number of findings beyond the limit, which are not listed.
        package var unnamed: Int64 = 0

        package init() {}

        package mutating func add(_ other: Examined) {
            findings += other.findings
            pipelines += other.pipelines
            generations += other.generations
            bytes += other.bytes
            unnamed += other.unnamed
        }

        /// The number of errors that remain.
        package var left: Int64 { Int64(findings.count { !$0.repaired }) + unnamed }
    }
}

// MARK: Text

extension ExaminationFinding {
    /// The finding as one line of text.
    package var sentence: String {
        let subject = pipeline.map { "\($0): " } ?? ""
        let more = detail.map { " (\($0))" } ?? ""
        return "\(subject)\(what): \(path)\(more)"
    }

    /// The finding as text, with its remedy unless it has been repaired.
    package var lines: [String] { repaired ? [sentence + "; repaired"] : [sentence, "  " + remedy] }

    private var number: String { generation.map { "generation \($0)" } ?? "the generation" }

    private var what: String {
        switch kind {
        case .indexDamaged: "the index is damaged"
        case .copyMissing: "the published file of \(number) is missing"
        case .copyDamaged:
            generation == nil
                ? "a published file exists without a generation"
                : "the published file of \(number) is missing or altered"
        case .copyDuplicated: "the published file is a second copy of \(number), and uses disk space twice"
        case .contentDamaged: "\(number) is damaged"
        case .contentMissing: "the file of \(number) is gone"
        case .contentUnknown: "\(number) is not in the index"
        case .rejectedDamaged: "the rejected content that was kept is damaged or missing"
        case .setDamaged: "a published file of \(number) is missing or altered"
        case .pinLost: "\(number), to which it is pinned, is missing"
        case .unfinished: "an unfinished commit left a file"
        case .stray: "not a file of the cache"
        case .unknown: "an error that this freshetctl does not know"
        }
    }

    private var remedy: String {
        switch kind {
        case .indexDamaged: "Stop the daemon and run 'freshetctl fsck --repair': it builds a new index from the files."
        case .copyMissing: "--repair restores it from its generation, or the next check fetches it."
        case .copyDamaged:
            "--repair removes it and publishes an intact generation, or the next check fetches one."
        case .copyDuplicated: "--repair makes them one file."
        case .contentDamaged: "--repair removes it."
        case .contentMissing: "--repair removes it from the index, or restores it from the published file."
        case .contentUnknown, .unfinished: "--repair removes it."
        case .rejectedDamaged: "--repair removes it."
        case .setDamaged: "--repair restores them from the stamp file, and removes other files in the directory."
        case .pinLost: "'freshetctl unpin \(pipeline ?? "NAME")', then the next check publishes the source's content."
        case .stray: "--repair moves it to 'strays' in the cache directory."
        case .unknown: "Use the freshetctl of the daemon's version; --repair may repair it."
        }
    }
}

extension ControlMessage.Examined {
    /// How much was examined, and how many errors remain, as text.
    package var total: String {
        func count(_ number: Int64, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        let examined = "\(count(pipelines, "pipeline")), \(count(generations, "generation")), \(count(bytes, "byte"))"
        let repaired = Int64(findings.count(where: \.repaired))
        let done = repaired > 0 ? "\(repaired) repaired, " : ""
        return "\(examined): \(done)\(left == 0 ? "no errors" : count(left, "error") + " left")"
    }
}
