import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging

/// What the control interface asks of the daemon.
extension Supervisor: ControlService {
    func daemon() async -> DaemonStatus {
        let fact = parts?.elsewhere.fact
        let usage = parts?.cache.usage
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
        (Array(pipelines.keys) + faulty.keys).sorted()
    }

    func hasPipeline(_ name: String) async -> Bool {
        pipelines[name] != nil || faulty[name] != nil
    }

    func fileNotInForce(_ name: String) async -> String? {
        let loader = loader
        return await pools.configuration.run("configuration") { loader.file(ofPipeline: name) }
    }

    func pipeline(_ name: String) async -> FreshetControl.PipelineStatus? {
        loop.nameJob("status of a pipeline")
        if let hosted = pipelines[name] {
            let status = hosted.runner.status
            let path = hosted.definition.needsNetwork ? targets[hosted.target]?.watch.fact.description : nil
            // Without a proof, what came instead of it is how the network leads there.
            let refusal = status.waitsFor?.reason == .network ? status.waitsFor?.detail : nil
            var shown = FreshetControl.PipelineStatus(
                status, of: hosted.definition, path: refusal ?? path, parameters: hosted.runner.parameters)
            if let debts = parts?.hooks.debts(of: name), !debts.isEmpty { shown.hooks = debts.map(PendingHook.init) }
            return shown
        }
        guard let fault = faulty[name] else { return nil }
        return FreshetControl.PipelineStatus(
            name: name, source: "its configuration has faults", state: .failed,
            generation: fault.remembered.offered.map(GenerationStatus.init), lastCheck: fault.remembered.lastCheck,
            failure: FailureStatus(
                message: fault.message, since: fault.since, attempts: 0, publicMessage: fault.message),
            withdrawn: fault.remembered.withdrawn.flatMap(WithdrawnCopy.init), heldSince: fault.remembered.heldSince)
    }

    func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool { readers.mayRead(name, peer) }

    func summary(of name: String) async -> PipelineSummary? {
        // Of faulty ones there are few.
        guard let hosted = pipelines[name] else { return await pipeline(name).map { PipelineSummary($0) } }
        return PipelineSummary(
            hosted.runner.status, hookFails: parts?.hooks.debts(of: name).contains(where: \.isFailing) ?? false)
    }

    /// The pipeline that runs under this name.
    func hosted(_ name: String) throws(ControlError) -> RunningPipeline {
        if let hosted = pipelines[name] { return hosted }
        // A reload may have removed it since it was looked up.
        throw faulty[name] == nil ? .noSuchPipeline(name: name, suggestion: nil) : .faultyPipeline(name: name)
    }

    func refresh(
        _ name: String, wait: Bool, force: Bool, unconditional: Bool = false
    ) async throws(ControlError) -> RefreshResult {
        guard let hosted = pipelines[name] else {
            guard let fault = faulty[name] else { throw .noSuchPipeline(name: name, suggestion: nil) }
            let failure = "it does not run: \(fault.message)"
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        // What is refused is answered, and is no signal: nothing heard it.
        if let refusal = hosted.runner.refusal(force: force) { return result(name, refusal) }
        let detail = "refresh" + (force ? " --force" : "") + (unconditional ? " --unconditional" : "")
        book.note(SignalName.operation, detail, pipeline: name)
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
        // That passes with no time, and with no force.
        guard refusal != .held else {
            let failure = Self.held(name)
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        return RefreshResult(name: name, tryLater: TryLaterHint(refusal))
    }

    /// Why nothing runs, and what helps.
    static func held(_ name: String) -> String { "it is held; 'freshetctl release \(name)' lets it run again" }

    func signals() async -> [SignalStatus] {
        var rows = [
            book.status(SignalName.start, fact: "the daemon is ready since it started")
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
        rows.append(book.status(SignalName.reload, fact: "waits for SIGHUP or freshetctl reload"))
        rows.append(book.status(SignalName.operation, fact: "waits for freshetctl refresh"))
        rows.append(book.status(SignalName.parameter, fact: "waits for freshetctl set"))
        let next = pipelines.values.compactMap { hosted in
            hosted.runner.status.next.flatMap { next in
                next.reason == .timer ? (name: hosted.runner.name, at: next.at) : nil
            }
        }.min { $0.at < $1.at }
        rows.append(
            book.status(
                SignalName.timer,
                fact: next.map { "next: \($0.name) in \(($0.at - .now).rounded)" } ?? "none is planned"))
        return rows.sorted { $0.name < $1.name }
    }

    private func network(_ target: NetworkTarget, _ fact: NetworkFact, unavailable: String?) -> SignalStatus {
        book.status(
            NetworkTargetFollower.row(of: target),
            fact: fact.text, unavailable: unavailable, ignored: parts?.network.minorChanges(of: target))
    }

    func reload(
        configurationOnly: Bool, asker: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        try await reload(configurationOnly: configurationOnly, detail: asker)
    }

    func logLevel() async -> LogLevel { LogLevel(threshold.level) }

    func setLogLevel(_ level: LogLevel, asker: String) async {
        let before = threshold.level
        let new = Logger.Level(level)
        guard new != before else { return }
        // Said at whichever level lets more through: that it grows silent, too.
        threshold.level = min(before, new)
        log.say(.logLevel, [.level: .string(level.rawValue), .asker: .string(asker)])
        threshold.level = new
    }

    /// How many pipelines there are, by state.
    func counts() async -> PipelineCounts {
        var states: [PipelineState] = []
        await lookAtPipelines("counts of pipelines") { states.append(PipelineState($1.activity)) }
        return PipelineCounts(states + Array(repeating: .failed, count: faulty.count))
    }

    // MARK: The server

    /// The least number of an ordinary user (login.defs(5), UID_MIN on Debian).
    private static let firstOrdinaryUser: UInt32 = 1_000

    private static func rights() -> ControlRights {
        let user = geteuid()
        var group: UInt32?
        if let entry = getgrnam("freshet") { group = entry.pointee.gr_gid }
        return ControlRights(
            daemonUser: user, isSystemDaemon: user != 0 && user < firstOrdinaryUser, changingGroup: group)
    }

    /// Serves the socket that was passed, or makes it. Clients wait in its queue until all that begins has begun: what is
    /// adopted runs after that.
    func serveControl() throws {
        let path = options.socket ?? "\(directories.runtime)/\(ControlInterface.name)"
        let listener = try inherited ?? VarlinkListener(path: path)
        let server = try VarlinkServer(
            loop, listener,
            identity: VarlinkServer.Identity(
                vendor: "Freshet", product: "freshetd", version: Version.current, url: ""),
            interfaces: try ControlDispatcher(self, rights: Self.rights()).interfaces())
        if let path = listener.path { keepSocket(of: server, at: path) }
        adopt { [weak self] in
            do {
                try await server.run()
            } catch {
                self?.log.say(.controlFailed, [.error: .string("\(error)")])
                self?.end(.failure)
            }
        }
    }
}

extension TryLaterHint {
    init(_ refusal: RefreshRefusal) {
        var until: Int64?
        switch refusal {
        case .retryAfter(let instant), .budget(let instant): until = WallClock.microseconds(at: instant)
        case .held, .network, .crowded: break
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
