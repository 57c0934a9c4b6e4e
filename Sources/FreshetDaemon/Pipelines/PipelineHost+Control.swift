import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd

/// Descriptions and counters of pipelines.
extension Supervisor {
    func description(of name: String) async -> PipelineDescription? {
        guard let hosted = pipelines[name] else {
            return invalid[name].map { _ in
                PipelineDescription(name: name, source: "its configuration has errors", invalid: true)
            }
        }
        let definition = hosted.definition
        let policy = definition.refresh
        return PipelineDescription(
            name: name, description: definition.description, source: definition.source.text,
            inputs: definition.stage.upstreams, signals: rows(of: hosted), files: readers(of: definition),
            hooks: definition.hooks.map(\.text), everyUSec: policy.every?.microseconds,
            quietUSec: policy.quiet.microseconds, atMostUSec: policy.atMost.microseconds,
            freshForUSec: policy.freshFor.microseconds,
            minIntervalUSec: policy.minInterval > .zero ? policy.minInterval.microseconds : nil,
            deadlineUSec: policy.deadline.microseconds, maxAgeUSec: definition.cache.maxAge?.microseconds,
            whenRunning: policy.whenRunning.rawValue, needsNetwork: definition.needsNetwork)
    }

    func counters(of name: String) async -> PipelineCounters? {
        guard let hosted = pipelines[name] else { return invalid[name].map { _ in PipelineCounters(name: name) } }
        let counters = hosted.runner.counters
        func runs(_ outcome: FreshetModel.RunOutcome) -> Int64 { Int64(counters.outcomes[outcome] ?? 0) }
        return PipelineCounters(
            name: name, changed: runs(.changed), unchanged: runs(.unchanged), failed: runs(.failed),
            superseded: runs(.superseded), cancelled: runs(.cancelled), durationUSec: counters.duration.microseconds,
            requests: Int64(counters.requests), receivedBytes: Int64(clamping: counters.bytes))
    }

    /// The rows of `freshetctl signals` that a pipeline subscribes to, sorted by name.
    private func rows(of hosted: RunningPipeline) -> [String] {
        let (definition, policy) = (hosted.definition, hosted.definition.refresh)
        var rows = policy.on.map { signal in
            signal == .network ? NetworkTargetFollower.row(of: hosted.target) : signal.rawValue
        }
        rows.append(SignalName.operation)
        if policy.every != nil { rows.append(SignalName.timer) }
        if !definition.parameters.isEmpty { rows.append(SignalName.parameter) }
        rows += policy.dbus.map { SharedBusMatch.row(of: $0) }
        rows += policy.files.map { FileMonitor.signalName(of: $0) }
        rows += policy.after.map { CommitSignals.row(of: $0) }
        return rows.sorted()
    }

    /// The paths of the published files.
    private func readers(of definition: PipelineDefinition) -> [String] {
        let current = directories.cache + "/current/"
        guard !definition.cache.files.isEmpty else { return [current + definition.cache.file] }
        return definition.cache.files.map { "\(current)\(definition.cache.file)/\($0.name)" }
    }
}
