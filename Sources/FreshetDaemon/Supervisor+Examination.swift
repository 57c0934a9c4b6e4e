import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Logging

/// Examining the cache beside runs and readers.
extension Supervisor {
    func examinationSteps() async throws(ControlError) -> [ExaminationStep] {
        let store = try cacheStore()
        do throws(CacheError) {
            // Strays first: a name too many of content that is kept stands in the way of putting that back.
            return [.index, .strays] + (try await store.examinable()).map(ExaminationStep.pipeline)
        } catch {
            throw .failed(name: nil, reason: error.description)
        }
    }

    func examine(_ step: ExaminationStep, repair: Bool) async throws(ControlError) -> ControlMessage.Examined {
        let store = try cacheStore()
        let examination: CacheExamination
        do throws(CacheError) {
            examination = try await store.examine(step, mends: repair) { [weak self] in self?.isEnding ?? true }
        } catch {
            throw .failed(name: step.pipeline, reason: error.description)
        }
        if isEnding { throw .busy("the daemon stops") }
        tell(examination, of: step.pipeline)
        return ControlMessage.Examined(examination, of: step)
    }

    /// So many repairs of a pipeline are told one by one.
    private static let namedRepairs = 10

    /// Says what was mended, to the journal and to those who follow the copy.
    private func tell(_ examination: CacheExamination, of name: String?) {
        let mended = examination.findings.filter(\.isMended)
        guard !mended.isEmpty else { return }
        var repairs = mended.prefix(Self.namedRepairs).map { ExaminationFinding($0).sentence }
        if mended.count > repairs.count { repairs.append("\(mended.count - repairs.count) more") }
        log.say(
            .cacheMended,
            [.pipeline: .string(name ?? "none"), .repairs: .string(repairs.joined(separator: "; "))])
        guard let name else { return }
        if mended.contains(where: { $0.kind == .refusedDamaged }) {
            pipelines[name]?.runner.keepsNothingRefused()
            faulty[name]?.remembered.refused = nil
        }
        if let kept = withdrawn(name), mended.contains(where: { $0.isOfContent(of: Int64(clamping: kept.number)) }) {
            return lost(name)
        }
        let before = offered(name)?.number
        if examination.isLost, before != nil { return lost(name) }
        guard let now = examination.offered.map(CurrentGeneration.init) else { return }
        changed(name, now, detail: "the cache was mended; generation \(now.number) is current")
        guard now.number != before else { return }
        commitNews.raise(name, "\(name) was mended")
        parts?.hooks.offer(name, now, causes: "fsck")
    }

    /// Nothing of a pipeline was whole, and readers see nothing any more until it is fetched again.
    private func lost(_ name: String) {
        faulty[name]?.remembered.generation = nil
        let runner = pipelines[name]?.runner
        runner?.offersNothing()
        changed(name, nil, detail: "the cache was mended; nothing of it was whole, and it is fetched again")
        // Refused while it is held, out of budget or without network: then its next check does that.
        _ = runner?.requestRefresh(force: false)
    }
}

extension CacheFinding {
    /// The content of this generation is not kept any more.
    fileprivate func isOfContent(of number: Int64) -> Bool {
        generation == number && [.contentDamaged, .contentMissing].contains(kind)
    }
}

extension ExaminationStep {
    fileprivate var pipeline: String? {
        if case .pipeline(let name) = self { name } else { nil }
    }
}

extension CacheStore {
    func examinable() async throws(CacheError) -> [String] {
        try await examiner.run("examination") { [cache] () throws(CacheError) in try cache.examinable() }
    }

    func examine(
        _ step: ExaminationStep, mends: Bool, until isEnough: @escaping @Sendable () -> Bool
    ) async throws(CacheError) -> CacheExamination {
        try await examiner.run("examination") { [cache] () throws(CacheError) in
            try cache.examine(step, mends: mends, until: isEnough)
        }
    }
}

extension LocalCache {
    func examine(
        _ step: ExaminationStep, mends: Bool, until isEnough: () -> Bool = { false }
    ) throws(CacheError) -> CacheExamination {
        switch step {
        case .index: try examineIndex()
        case .strays: try examineStrays(mends: mends)
        case .pipeline(let name): try examine(name, mends: mends, until: isEnough)
        }
    }
}

extension ControlMessage.Examined {
    init(_ examination: CacheExamination, of step: ExaminationStep) {
        self.init()
        findings = examination.findings.map(ExaminationFinding.init)
        pipelines = step.pipeline == nil ? 0 : 1
        generations = Int64(examination.generations)
        bytes = examination.bytes
        unnamed = Int64(examination.unnamed)
    }
}

extension ExaminationFinding {
    init(_ finding: CacheFinding) {
        self.init(
            kind: Kind(rawValue: finding.kind.rawValue) ?? .unknown, pipeline: finding.pipeline,
            generation: finding.generation, path: finding.path, detail: finding.detail, repaired: finding.isMended)
    }
}
