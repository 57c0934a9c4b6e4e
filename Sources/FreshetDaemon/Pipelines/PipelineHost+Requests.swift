import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging

/// Implements the control interface.
extension Supervisor: ControlService {
    func daemon() async -> DaemonStatus {
        let fact = parts?.elsewhere.fact
        let usage = parts?.cache.space.usage
        let slow = slowJobs.status
        let memory = parts?.memory
        return DaemonStatus(
            version: Version.current, pid: Int64(getpid()), since: started,
            network: fact?.description ?? "not known", networkReachable: fact?.isReachable ?? true,
            pipelines: await counts(),
            failingHooks: parts.flatMap { $0.hooks.failing > 0 ? Int64($0.hooks.failing) : nil },
            cacheBytes: usage?.bytes, cacheLimit: usage?.limit,
            memoryBytes: memory.map { Int64(clamping: $0.counts.taken) },
            memoryLimit: memory.map { Int64(clamping: $0.limit) }, configurationSince: configurationSince,
            refusedReload: refusedReload, slowJobs: slow.isEmpty ? nil : slow)
    }

    func pipelineNames() async -> [String] {
        (Array(pipelines.keys) + invalid.keys).sorted()
    }

    func hasPipeline(_ name: String) async -> Bool {
        pipelines[name] != nil || invalid[name] != nil
    }

    func inactiveFile(_ name: String) async -> String? {
        await reader.file(ofPipeline: name)
    }

    func pipeline(_ name: String) async -> FreshetControl.PipelineStatus? {
        loop.nameJob("status of a pipeline")
        if let hosted = pipelines[name] {
            let status = hosted.runner.status
            let path = hosted.definition.needsNetwork ? targets[hosted.target]?.watch.fact.description : nil
            // If the network probe failed, its result replaces the path.
            let refusal = status.waitsFor?.reason == .network ? status.waitsFor?.detail : nil
            var shown = FreshetControl.PipelineStatus(
                status, of: hosted.definition, path: refusal ?? path, parameters: hosted.runner.parameters)
            if let pendingHooks = parts?.hooks.pendingHooks(of: name), !pendingHooks.isEmpty {
                shown.hooks = pendingHooks.map(PendingHook.init)
            }
            return shown
        }
        guard let error = invalid[name] else { return nil }
        return FreshetControl.PipelineStatus(
            name: name, source: "its configuration has errors", state: .failed,
            generation: error.remembered.published.map(GenerationStatus.init),
            lastCheck: error.remembered.lastCheck?.microseconds,
            failure: FailureStatus(
                message: error.message, since: error.since, attempts: 0, publicMessage: error.message),
            withdrawn: error.remembered.withdrawn.flatMap(WithdrawnCopy.init),
            heldSince: error.remembered.heldSince?.microseconds)
    }

    func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool { readers.mayRead(name, peer) }

    func summary(of name: String) async -> PipelineSummary? {
        // There are few invalid pipelines, so their summaries may cost more.
        guard let hosted = pipelines[name] else { return await pipeline(name).map { PipelineSummary($0) } }
        return PipelineSummary(
            hosted.runner.status, hookFails: parts?.hooks.pendingHooks(of: name).contains(where: \.isFailing) ?? false)
    }

    /// The running pipeline of this name.
    func hosted(_ name: String) throws(ControlError) -> RunningPipeline {
        if let hosted = pipelines[name] { return hosted }
        // A reload may have removed it since it was looked up.
        throw invalid[name] == nil ? .noSuchPipeline(name: name, suggestion: nil) : .invalidPipeline(name: name)
    }

    func refresh(
        _ name: String, wait: Bool, force: Bool, unconditional: Bool = false
    ) async throws(ControlError) -> RefreshResult {
        guard let hosted = pipelines[name] else {
            guard let error = invalid[name] else { throw .noSuchPipeline(name: name, suggestion: nil) }
            let failure = "it does not run: \(error.message)"
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        // A refused request is not recorded as a signal, because no pipeline received it.
        if let refusal = hosted.runner.refusal(force: force) { return result(name, refusal) }
        let detail = "refresh" + (force ? " --force" : "") + (unconditional ? " --unconditional" : "")
        registry.recordOccurrence(SignalName.operation, detail, pipeline: name)
        guard wait else {
            switch hosted.runner.requestRefresh(force: force, unconditional: unconditional) {
            case nil: return RefreshResult(name: name)
            case let refusal?: return result(name, refusal)
            }
        }
        switch await hosted.runner.refresh(force: force, unconditional: unconditional) {
        case .stopped: throw .busy("'\(name)' was stopped before its run ended")
        case .refused(let refusal): return result(name, refusal)
        case .ended(let summary):
            let generation = hosted.runner.status.generation
            return RefreshResult(
                name: name, outcome: FreshetControl.RunOutcome(rawValue: summary.outcome.rawValue),
                run: Int64(clamping: summary.run), generation: generation.map { Int64(clamping: $0.number) },
                size: generation.map { Int64(clamping: $0.size) }, durationUSec: summary.duration.microseconds,
                failure: summary.failure?.message, behind: generation?.isBehind == true ? true : nil,
                publicFailure: summary.failure?.publicMessage)
        }
    }

    private func result(_ name: String, _ refusal: RefreshRefusal) -> RefreshResult {
        // A hold has no end time, and `--force` does not override it.
        guard refusal != .held else {
            let failure = Self.held(name)
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        return RefreshResult(name: name, tryLater: TryLaterHint(refusal))
    }

    /// The error message for a request to a held pipeline.
    static func held(_ name: String) -> String { "it is held; 'freshetctl release \(name)' lets it run again" }

    func signals() async -> [SignalStatus] {
        var rows = [
            registry.status(SignalName.start, fact: "the daemon has started")
        ]
        var unavailable: String?
        if case .unavailable(let reason) = parts?.network.availability { unavailable = reason }
        if let elsewhere = parts?.elsewhere {
            rows.append(network(.elsewhere, elsewhere.fact, unavailable: unavailable))
        }
        for (target, follower) in targets where target != .elsewhere {
            rows.append(network(target, follower.watch.fact, unavailable: unavailable))
        }
        rows.append(resumeStatus())
        rows.append(foregroundStatus())
        rows += busStatus()
        rows += fileStatuses()
        rows += await commitStatuses()
        rows.append(registry.status(SignalName.reload, fact: "waits for SIGHUP or freshetctl reload"))
        rows.append(registry.status(SignalName.operation, fact: "waits for freshetctl refresh"))
        rows.append(registry.status(SignalName.parameter, fact: "waits for freshetctl set"))
        let next = pipelines.values.compactMap { hosted in
            hosted.runner.status.next.flatMap { next in
                next.reason == .timer ? (name: hosted.runner.name, at: next.at) : nil
            }
        }.min { $0.at < $1.at }
        rows.append(
            registry.status(
                SignalName.timer,
                fact: next.map { "next: \($0.name) in \(($0.at - .now).rounded)" } ?? "no run is planned"))
        return rows.sorted { $0.name < $1.name }
    }

    private func network(_ target: NetworkTarget, _ fact: NetworkFact, unavailable: String?) -> SignalStatus {
        registry.status(
            NetworkTargetFollower.row(of: target),
            fact: fact.text, unavailable: unavailable, ignored: parts?.network.minorChanges(of: target))
    }

    func reload(
        configurationOnly: Bool, caller: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        try await reload(configurationOnly: configurationOnly, detail: caller)
    }

    func logLevel() async -> LogLevel { LogLevel(threshold.level) }

    func setLogLevel(_ level: LogLevel, caller: String) async {
        let before = threshold.level
        let new = Logger.Level(level)
        guard new != before else { return }
        // Logged at the lower of the two levels, so that a change to a less verbose level is logged too.
        threshold.level = min(before, new)
        log.log(.logLevel, [.level: .string(level.rawValue), .caller: .string(caller)])
        threshold.level = new
    }

    /// The number of pipelines in each state.
    func counts() async -> PipelineCounts {
        var states: [PipelineState] = []
        await forEachSnapshot("counts of pipelines") { states.append(PipelineState($1.activity)) }
        return PipelineCounts(states + Array(repeating: .failed, count: invalid.count))
    }
}

extension TryLaterHint {
    init(_ refusal: RefreshRefusal) {
        var until: Int64?
        switch refusal {
        case .retryAfter(let instant), .budget(let instant): until = WallClock.microseconds(at: instant)
        case .held, .network, .tooManyRequests: break
        }
        self.init(reason: refusal.description, until: until)
    }
}

extension LogLevel {
    init(_ level: Logger.Level) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}

extension Logger.Level {
    init(_ level: LogLevel) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}
