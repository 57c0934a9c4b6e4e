import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging

/// Examines the cache while pipelines run and readers read.
extension Supervisor {
    func examinationSteps() async throws(ControlError) -> [ExaminationStep] {
        let store = try cacheStore()
        do throws(CacheError) {
            // Strays come first: an extra link to kept content can prevent the restoration of that content.
            return [.index, .strays] + (try await store.examinable()).map(ExaminationStep.pipeline)
        } catch {
            throw .failed(name: nil, reason: error.description)
        }
    }

    func examine(_ step: ExaminationStep, repair: Bool) async throws(ControlError) -> ControlMessage.Examined {
        let store = try cacheStore()
        let examination: CacheExamination
        do throws(CacheError) {
            examination = try await store.examine(step, repairs: repair) { [weak self] in self?.isEnding ?? true }
        } catch {
            throw .failed(name: step.pipeline, reason: error.description)
        }
        if isEnding { throw .busy("the daemon is stopping") }
        log(examination, of: step.pipeline)
        return ControlMessage.Examined(examination, of: step)
    }

    /// The maximum number of repairs of a pipeline that the log message names.
    private static let namedRepairs = 10

    /// Logs repairs, and publishes the change of the copy.
    private func log(_ examination: CacheExamination, of name: String?) {
        let repaired = examination.findings.filter(\.isRepaired)
        guard !repaired.isEmpty else { return }
        var repairs = repaired.prefix(Self.namedRepairs).map { ExaminationFinding($0).sentence }
        if repaired.count > repairs.count { repairs.append("\(repaired.count - repairs.count) more") }
        log.log(
            .cacheRepaired,
            [.pipeline: .string(name ?? "none"), .repairs: .string(repairs.joined(separator: "; "))])
        guard let name else { return }
        if repaired.contains(where: { $0.kind == .rejectedDamaged }) {
            pipelines[name]?.runner.keepsNothingRejected()
            invalid[name]?.remembered.rejected = nil
        }
        let before = published(name)?.number
        if let revision = examination.lostRevision {
            let isKeptLost = withdrawn(name).map { kept in
                repaired.contains { $0.isOfContent(of: Int64(clamping: kept.number)) }
            }
            guard isKeptLost ?? (before != nil) else { return }
            return lost(name, revision: revision)
        }
        guard let now = examination.published else { return }
        changed(name, now, detail: "the cache was repaired; generation \(now.number) is current")
        guard now.number != before else { return }
        commitSignals.fire(name, "\(name) was repaired")
        parts?.hooks.generationChanged(name, now, causes: "fsck")
    }

    /// Handles a repair that left a pipeline without any intact content: readers find no file until the next fetch.
    ///
    /// - Parameter revision: when that was: a run may have committed a copy since then.
    private func lost(_ name: String, revision: UInt64) {
        invalid[name]?.remembered.generation = nil
        if let runner = pipelines[name]?.runner, !runner.losesCopy(revision: revision) { return }
        fetchAgain(name)
    }

    /// Requests a run of a pipeline that has lost its copy.
    func fetchAgain(_ name: String) {
        let runner = pipelines[name]?.runner
        changed(name, nil, detail: "no content is intact, so Freshet fetches it again")
        // The request is refused while the pipeline is held, out of budget or without network; then its next check
        // fetches.
        _ = runner?.requestRefresh(force: false)
    }
}

extension CacheFinding {
    /// Whether the finding says that the content of this generation is not kept any more.
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
        try await examiner.run("examination") { [cache] () throws(CacheError) in try cache.checker.examinable() }
    }

    func examine(
        _ step: ExaminationStep, repairs: Bool, until isEnough: @escaping @Sendable () -> Bool
    ) async throws(CacheError) -> CacheExamination {
        try await examiner.run("examination") { [cache] () throws(CacheError) in
            try cache.checker.examine(step, repairs: repairs, until: isEnough)
        }
    }
}

extension CacheChecker {
    func examine(
        _ step: ExaminationStep, repairs: Bool, until isEnough: () -> Bool = { false }
    ) throws(CacheError) -> CacheExamination {
        switch step {
        case .index: try examineIndex()
        case .strays: try examineStrays(repairs: repairs)
        case .pipeline(let name): try examine(name, repairs: repairs, until: isEnough)
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
            generation: finding.generation, path: finding.path, detail: finding.detail, repaired: finding.isRepaired)
    }
}
