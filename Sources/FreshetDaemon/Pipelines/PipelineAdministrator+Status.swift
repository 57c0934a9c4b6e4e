import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Logging

/// The status of pipelines for clients. All methods on several pipelines are one job of the loop: with one job per
/// pipeline, a client that requests all pipelines would wait for other jobs before each of them.
extension PipelineAdministrator {
    func pipelineNames() -> [String] { host.names }

    func pipelineNames(in states: Set<PipelineState>) async -> [String] {
        await overview.update()
        return overview.names(in: states).sorted()
    }

    func hasPipeline(_ name: String) -> Bool { host[name] != nil }

    func mayRead(_ name: String, _ peer: VarlinkPeer) -> Bool { context.readers.mayRead(name, peer) }

    func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) -> [FreshetControl.PipelineStatus] {
        names.compactMap { name in
            pipeline(name).map { mayRead(name, peer) ? $0 : $0.withholdingContent() }
        }
    }

    func copy(of name: String, for peer: VarlinkPeer) -> CopyStatus? {
        guard let hosted = host[name] else { return nil }
        let copy =
            switch hosted {
            case .running(let running): running.runner.copy
            case .invalid(let invalid): invalid.remembered.published ?? invalid.remembered.withdrawn
            }
        guard let copy else { return CopyStatus.none }
        if let withdrawn = WithdrawnCopy(copy) { return .withdrawn(withdrawn) }
        let generation = GenerationStatus(copy)
        return .published(mayRead(name, peer) ? generation : generation.withholdingContent())
    }

    func summaries(of names: ArraySlice<String>, for peer: VarlinkPeer) -> [PipelineSummary] {
        names.compactMap { summary(of: $0, for: peer) }
    }

    func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription] {
        var descriptions = names.compactMap { description(of: $0) }
        for index in descriptions.indices {
            let needed = host.running(descriptions[index].name)?.definition.credentials ?? []
            guard !needed.isEmpty else { continue }
            var files: [CredentialFile] = []
            for name in Set(needed.map(\.name)).sorted() { files.append(await secrets.place(of: name)) }
            descriptions[index].credentials = files
        }
        return descriptions
    }

    func counters(of names: ArraySlice<String>) -> [PipelineCounters] { names.compactMap { counters(of: $0) } }

    /// The status of a pipeline; nil if there is none of this name.
    func pipeline(_ name: String) -> FreshetControl.PipelineStatus? {
        context.loop.nameJob("status of a pipeline")
        if let hosted = host.running(name) {
            let status = hosted.runner.status
            let path = hosted.definition.needsNetwork ? host.networks.detailedPath(to: hosted.target) : nil
            // If the network probe failed, its result replaces the path.
            let refusal = status.waitsFor?.reason == .network ? status.waitsFor?.detail : nil
            var shown = FreshetControl.PipelineStatus(
                status, of: hosted.definition, path: refusal ?? path, parameters: hosted.runner.parameters)
            if hosted.definition.needsNetwork, refusal == nil {
                shown.noRouteTo = host.networks.nameWithoutRoute(of: hosted.target)
            }
            let pendingHooks = host.hooks.scheduler.pendingHooks(of: name)
            if !pendingHooks.isEmpty { shown.hooks = pendingHooks.map(PendingHook.init) }
            shown.fleet = host.fleet.part(of: name)
            return shown
        }
        guard let error = host.invalid(name) else { return nil }
        return FreshetControl.PipelineStatus(
            name: name, source: "its configuration has errors", state: .failed,
            generation: error.remembered.published.map(GenerationStatus.init),
            lastCheck: error.remembered.lastCheck?.microseconds,
            failure: FailureStatus(
                message: error.message, since: error.since, attempts: 0, publicMessage: error.message),
            withdrawn: error.remembered.withdrawn.flatMap(WithdrawnCopy.init),
            heldSince: error.remembered.heldSince?.microseconds)
    }

    private func summary(of name: String, for peer: VarlinkPeer) -> PipelineSummary? {
        // There are few invalid pipelines, so their summaries may cost more.
        guard let hosted = host.running(name) else { return pipeline(name).map { PipelineSummary($0) } }
        return PipelineSummary(
            hosted.runner.status, hookFails: host.hooks.scheduler.pendingHooks(of: name).contains(where: \.isFailing),
            mayRead: mayRead(name, peer))
    }

    private func description(of name: String) -> PipelineDescription? {
        guard let hosted = host.running(name) else {
            return host.invalid(name).map { _ in
                PipelineDescription(name: name, source: "its configuration has errors", invalid: true)
            }
        }
        let definition = hosted.definition
        let policy = definition.refresh
        return PipelineDescription(
            name: name, description: definition.description, source: definition.source.text,
            inputs: definition.stage.upstreams, signals: host.signals.names(for: host.needs(of: definition)),
            files: readers(of: definition),
            hooks: definition.hooks.map(\.text) + host.hooks.shared(of: name), everyUSec: policy.every?.microseconds,
            at: policy.calendar.isEmpty ? nil : policy.calendar.map(\.text),
            quietUSec: policy.quiet.microseconds, atMostUSec: policy.atMost.microseconds,
            freshForUSec: policy.freshFor.microseconds,
            minIntervalUSec: policy.minInterval > .zero ? policy.minInterval.microseconds : nil,
            deadlineUSec: policy.deadline.microseconds, maxAgeUSec: definition.cache.maxAge?.microseconds,
            whenRunning: policy.whenRunning.rawValue, needsNetwork: definition.needsNetwork)
    }

    private func counters(of name: String) -> PipelineCounters? {
        guard let hosted = host.running(name) else {
            return host.invalid(name).map { _ in PipelineCounters(name: name) }
        }
        let counters = hosted.runner.counters
        func runs(_ outcome: FreshetModel.RunOutcome) -> Int64 { Int64(counters.runs(outcome)) }
        return PipelineCounters(
            name: name, changed: runs(.changed), unchanged: runs(.unchanged), failed: runs(.failed),
            superseded: runs(.superseded), cancelled: runs(.cancelled), durationUSec: counters.duration.microseconds,
            requests: Int64(counters.requests), receivedBytes: Int64(clamping: counters.bytes))
    }

    /// The paths of the published files.
    private func readers(of definition: PipelineDefinition) -> [String] {
        let current = context.directories.cache + "/current/"
        guard !definition.cache.files.isEmpty else { return [current + definition.cache.file] }
        return definition.cache.files.map { "\(current)\(definition.cache.file)/\($0.name)" }
    }
}

extension FreshetControl.PendingHook {
    fileprivate init(_ pending: HookMachine.PendingRun) {
        self.init(
            hook: pending.shared.map(SharedHookDefinition.identity) ?? pending.hook.text,
            description: pending.description, generation: Int64(clamping: pending.generation),
            running: pending.isRunning,
            attempts: Int64(pending.memory.attempts), since: pending.memory.failingSince?.microseconds,
            error: pending.memory.error,
            next: pending.next.map(WallClock.microseconds(at:)), waits: pending.wait.flatMap(\.text))
    }
}

extension HookMachine.Wait {
    /// What the hook waits for, as people see it; nil: only for the time of its next attempt.
    fileprivate var text: String? {
        switch self {
        case .backoff: nil
        case .splay: "its part of the splay"
        case .quiet: "the end of the burst of changes"
        case .ownRun: "the end of its run for earlier changes"
        case .group(let name): "the other hooks of the group \(name)"
        case .others: "other hooks"
        }
    }
}
