import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// One target of the network, followed for all pipelines that need it.
struct NetworkTargetFollower: Sendable {
    let watch: NetworkWatch
    let following: SignalRegistry.Following
    /// Set to end the tasks that follow.
    let ending = CurrentValue(false)
    var state: NetworkState
    var news = FlapLimiter()
    /// Pipelines that need it.
    var users = 1

    init(_ watch: NetworkWatch, _ following: SignalRegistry.Following, state: NetworkState) {
        self.watch = watch
        self.following = following
        self.state = state
    }

    /// The row of `freshetctl signals`.
    static func row(of target: NetworkTarget) -> String {
        switch target {
        case .elsewhere: NetworkMonitor.signalName
        case .address(let address): "\(NetworkMonitor.signalName) \(address)"
        }
    }
}

extension NetworkTarget {
    /// The target of a pipeline: the address that it names, its origin's if that is a literal one, the daemon's, or
    /// elsewhere.
    init(_ definition: PipelineDefinition, daemonTarget: String?) {
        var candidates: [String?] = []
        if case .address(let text) = definition.refresh.needsNetwork { candidates.append(text) }
        candidates += definition.sources.map { source in
            if case .http(let source) = source, !source.isLocal, source.placeOfURL == nil { source.host } else { nil }
        }
        candidates.append(daemonTarget)
        let address = candidates.lazy.compactMap { $0.flatMap(IPAddress.init(_:)) }.first
        self = address.map(NetworkTarget.address) ?? .elsewhere
    }
}

extension NetworkState {
    /// The engine's view of a fact.
    ///
    /// The engine takes another text for another path. What comes and goes beside the path that stands (the other
    /// protocol) changes the fact's text and begins no epoch: the text from before is kept.
    init(_ fact: NetworkFact, before: NetworkState?) {
        let stands = before.map { $0.reachable && fact.isReachable && $0.epoch == fact.epoch } ?? false
        self.init(
            reachable: fact.isReachable, epoch: fact.epoch, changedAt: fact.changedAt,
            path: stands ? before?.path ?? fact.description : fact.description)
    }
}
