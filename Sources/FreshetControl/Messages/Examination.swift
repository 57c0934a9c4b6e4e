/// Something of the cache that is not as it was committed.
package struct ExaminationFinding: Codable, Hashable, Sendable {
    package enum Kind: String, OpenEnumeration, Hashable, Sendable, CaseIterable {
        case indexDamaged, copyMissing, copyDamaged, copyApart, contentDamaged, contentMissing, contentUnknown
        case refusedDamaged, pinLost, unfinished, stray, setDamaged
        case unknown
    }

    package var kind: Kind
    /// Nil: it is no pipeline's.
    package var pipeline: String?
    package var generation: Int64?
    package var path: String
    /// What more there is to say of it, or why it could not be repaired.
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

/// A part of the cache that is examined by itself.
package enum ExaminationStep: Hashable, Sendable {
    case index
    /// What is no pipeline's.
    case strays
    case pipeline(String)
}

extension ControlMessage {
    package struct Examine: Codable, Hashable, Sendable {
        package var repair: Bool?
        package init(repair: Bool? = nil) { self.repair = repair }
    }

    /// A reply of `Examine`: what was found since the one before, and of how much.
    package struct Examined: Codable, Hashable, Sendable {
        package var findings: [ExaminationFinding] = []
        package var pipelines: Int64 = 0
        /// Those whose content was read.
        package var generations: Int64 = 0
        /// Of that content.
        package var bytes: Int64 = 0
        /// Findings that are too many to be named.
        package var unnamed: Int64 = 0

        package init() {}

        package mutating func add(_ other: Examined) {
            findings += other.findings
            pipelines += other.pipelines
            generations += other.generations
            bytes += other.bytes
            unnamed += other.unnamed
        }

        /// Faults that are there still.
        package var left: Int64 { Int64(findings.count { !$0.repaired }) + unnamed }
    }
}

// MARK: Words

extension ExaminationFinding {
    /// For people, one line: what it is.
    package var sentence: String {
        let subject = pipeline.map { "\($0): " } ?? ""
        let more = detail.map { " (\($0))" } ?? ""
        return "\(subject)\(what): \(path)\(more)"
    }

    /// For people: what it is, and what helps or has helped.
    package var lines: [String] { repaired ? [sentence + "; repaired"] : [sentence, "  " + remedy] }

    private var number: String { generation.map { "generation \($0)" } ?? "the generation" }

    private var what: String {
        switch kind {
        case .indexDamaged: "the index is damaged"
        case .copyMissing: "the copy is gone, which is \(number)"
        case .copyDamaged:
            generation == nil ? "readers find a file, and there is no copy" : "readers do not find \(number)"
        case .copyApart: "the copy is another file than \(number), and takes the room twice"
        case .contentDamaged: "\(number) is damaged"
        case .contentMissing: "the file of \(number) is gone"
        case .contentUnknown: "the index does not know \(number)"
        case .refusedDamaged: "what a check refused, and is kept aside, is damaged or gone"
        case .setDamaged: "readers do not find all files of \(number)"
        case .pinLost: "\(number) is gone, at which it is pinned"
        case .unfinished: "what a commit has left that did not come to its end"
        case .stray: "nothing of the cache's"
        case .unknown: "this freshetctl does not know what it is"
        }
    }

    private var remedy: String {
        switch kind {
        case .indexDamaged: "Stop the daemon; 'freshetctl fsck --repair' then makes it anew from the files."
        case .copyMissing: "--repair puts it back, or has the next check fetch it."
        case .copyDamaged:
            "--repair takes that away, and puts a whole generation there, or has the next check fetch one."
        case .copyApart: "--repair makes them one."
        case .contentDamaged: "--repair removes it."
        case .contentMissing: "--repair forgets it, or has it from the copy again."
        case .contentUnknown, .unfinished: "--repair removes it."
        case .refusedDamaged: "--repair forgets it."
        case .setDamaged: "--repair makes them of the stamp again, and takes away what is there besides."
        case .pinLost: "'freshetctl unpin \(pipeline ?? "NAME")', and the next check takes what the source has."
        case .stray: "--repair moves it to 'strays' in the cache directory."
        case .unknown: "--repair may help; use the daemon's own freshetctl."
        }
    }
}

extension ControlMessage.Examined {
    /// For people: of how much, and what is left.
    package var total: String {
        func count(_ number: Int64, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        let examined = "\(count(pipelines, "pipeline")), \(count(generations, "generation")), \(count(bytes, "byte"))"
        let repaired = Int64(findings.count(where: \.repaired))
        let done = repaired > 0 ? "\(repaired) repaired, " : ""
        return "\(examined): \(done)\(left == 0 ? "no faults" : count(left, "fault") + " left")"
    }
}
