import FreshetModel
import FreshetPipelines
import FreshetSystemSignals

/// A pipeline of the active configuration.
enum HostedPipeline {
    case running(RunningPipeline)
    /// Indirect, because it is many times as large as the usual case, and a dictionary reserves space for the largest.
    indirect case invalid(InvalidPipeline)

    var running: RunningPipeline? {
        if case .running(let running) = self { running } else { nil }
    }

    var invalid: InvalidPipeline? {
        if case .invalid(let invalid) = self { invalid } else { nil }
    }
}

/// A running pipeline with its subscription.
struct RunningPipeline: Sendable {
    let runner: PipelineRunner
    let lease: SignalLease

    /// The network target that it needs.
    var target: NetworkTarget { lease.target }

    var definition: PipelineDefinition { runner.definition }

    /// See ``PipelineDefinition/mayBeOnDirectNetwork(_:)``.
    var mayBeOnDirectNetwork: Bool { definition.mayBeOnDirectNetwork(target) }
}

extension PipelineDefinition {
    /// Whether the origin may be on a directly connected network, which only an attempt can show: the URL has a host
    /// name, and neither an address nor a network probe is configured.
    func mayBeOnDirectNetwork(_ target: NetworkTarget) -> Bool {
        guard target == .elsewhere, needsNetwork, refresh.needsNetwork.probe == nil else { return false }
        return sources.contains { source in
            guard case .http(let source) = source else { return false }
            return !source.isLocal
        }
    }
}

/// A pipeline whose configuration has errors. It does not run; its last copy stays published.
struct InvalidPipeline: Sendable {
    var message: String
    var remembered: PersistentState
    /// Wall-clock microseconds since 1970.
    var since: Int64
}
