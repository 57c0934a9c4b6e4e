import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging
import Synchronization

/// Examines the cache while pipelines run and readers read, and removes the data of pipelines that are not configured.
extension CacheAdministrator: CacheControl {
    func examinationSteps() async throws(ControlError) -> [ExaminationStep] {
        do throws(CacheError) {
            // Strays come first: an extra link to kept content can prevent the restoration of that content.
            return [.index, .strays] + (try await operations.examinable()).map(ExaminationStep.pipeline)
        } catch {
            throw .failed(name: nil, reason: error.description)
        }
    }

    func examine(_ step: ExaminationStep, repair: Bool) async throws(ControlError) -> ControlMessage.Examined {
        let examination: CacheExamination
        // The caller may go away while a large file is read.
        let isCallerGone = Atomic(false)
        let result = await withTaskCancellationHandler {
            do throws(CacheError) {
                let isEnough = { @Sendable [weak self] in
                    isCallerGone.load(ordering: .relaxed) || self?.context.tasks.isEnding ?? true
                }
                return Result<_, CacheError>.success(
                    try await operations.examine(step, repairs: repair, until: isEnough))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            isCallerGone.store(true, ordering: .relaxed)
        }
        do throws(CacheError) {
            examination = try result.get()
        } catch {
            throw .failed(name: step.pipeline, reason: error.description)
        }
        if context.tasks.isEnding { throw .busy("the daemon is stopping") }
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
        context.log.log(
            .cacheRepaired,
            [.pipeline: .string(name ?? "none"), .repairs: .string(repairs.joined(separator: "; "))])
        guard let name else { return }
        if repaired.contains(where: { $0.kind == .rejectedDamaged }) {
            host.running(name)?.runner.keepsNothingRejected()
            host.changeInvalid(name) { $0.rejected = nil }
        }
        let before = host.published(name)?.number
        if let revision = examination.lostRevision {
            let isKeptLost = host.withdrawn(name).map { kept in
                repaired.contains { $0.isOfContent(of: Int64(clamping: kept.number)) }
            }
            guard isKeptLost ?? (before != nil) else { return }
            return lost(name, revision: revision)
        }
        guard let now = examination.published else { return }
        changed(name, now, detail: "the cache was repaired; generation \(now.number) is current")
        guard now.number != before else { return }
        commits.fire(name, "\(name) was repaired")
        hooks.generationChanged(name, now, causes: "fsck")
    }

    func unowned() async throws(ControlError) -> [UnownedPipeline] {
        let configured = try await configuredNames()
        do throws(CacheError) {
            return try await operations.holdings(besides: configured).map(UnownedPipeline.init)
        } catch {
            throw .failed(name: nil, reason: error.description)
        }
    }

    func prune(_ names: [String], caller: String) async throws(ControlError) -> ControlMessage.Pruned {
        // With the lock, a reload that adds a pipeline happens either before, and the pipeline is configured, or after,
        // and the pipeline starts without old data.
        await host.lock.acquire()
        defer { host.lock.release() }
        let configured = try await configuredNames()
        var pruned = ControlMessage.Pruned()
        for name in names where !configured.contains(name) {
            if context.tasks.isEnding {
                pruned.failed.append(UnprunedPipeline(name: name, reason: "the daemon is stopping"))
                continue
            }
            let holding: CacheUsage?
            do throws(CacheError) {
                holding = try await operations.prune(name)
            } catch {
                // A failure does not affect the other pipelines.
                pruned.failed.append(UnprunedPipeline(name: name, reason: error.description))
                continue
            }
            guard let holding else { continue }
            context.limiter.log(
                .pruned,
                [
                    .pipeline: .string(name), .file: .string(holding.file ?? "none"),
                    .bytes: .stringConvertible(holding.bytes), .caller: .string(caller),
                ])
            pruned.pipelines.append(UnownedPipeline(holding))
        }
        return pruned
    }

    /// The names of the active pipelines, and of all pipelines that have configuration files, valid or not.
    private func configuredNames() async throws(ControlError) -> Set<String> {
        let loaded = await reader.load()
        if let error = loaded.daemonDiagnostics.first(where: { $0.severity == .error }) {
            throw .failed(
                name: nil,
                reason: "nothing was removed, because the configuration cannot be read: \(error.sentence)")
        }
        return Set(loaded.files.names).union(loaded.pipelines.map(\.name)).union(loaded.invalid.keys)
            .union(host.names)
    }
}

/// The disk quota and leftovers.
extension CacheAdministrator {
    /// Removes leftovers of earlier processes in small steps, because other work needs the worker threads too.
    func removeLeftovers() async {
        let files = [ProgramInputFiles.hooks(context.directories), .checks(context.directories)]
        while !context.tasks.isEnding,
            await context.pools.cache.run("leftovers", { [cache] in cache.leftovers.remove() })
        {}
        for files in files {
            while !context.tasks.isEnding, await context.pools.cache.run("leftovers", { files.removeLeftovers() }) {}
        }
    }

    /// Applies the quota of a new configuration to the cache.
    func applyQuota(_ daemon: DaemonDefinition) async {
        let quota = CacheQuota(daemon)
        do throws(CacheError) {
            try await context.pools.cache.run("index") { [cache] () throws(CacheError) in
                try cache.space.setQuota(quota)
            }
        } catch {
            context.limiter.log(.cacheUpdateFailed, [.pipeline: .string("none"), .error: .string(error.description)])
        }
    }

    /// Updates the pipelines whose rejected candidates are not kept any more.
    func forgetRejected(_ items: [RemovedContent.Item]) async {
        for item in items {
            guard let digest = item.rejected else { continue }
            // A check may have rejected the same content again since.
            if await store.keepsRejected(item.pipeline, digest) { continue }
            host.running(item.pipeline)?.runner.keepsNotRejected(digest)
        }
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

extension UnownedPipeline {
    init(_ holding: CacheUsage) {
        self.init(
            name: holding.pipeline, file: holding.file, generations: Int64(holding.generations), bytes: holding.bytes,
            committedAt: holding.committedAt?.microseconds)
    }
}

extension CacheQuota {
    init(_ daemon: DaemonDefinition) {
        let reserve: FreeSpaceReserve =
            switch daemon.minFree {
            case .standard: .standard
            case .bytes(let bytes): FreeSpaceReserve(percent: 100, bytes: bytes)
            case .percent(let share): FreeSpaceReserve(percent: share, bytes: .max)
            }
        self.init(limit: daemon.cacheLimit.map { Int64(clamping: $0) }, reserve: reserve)
    }
}
