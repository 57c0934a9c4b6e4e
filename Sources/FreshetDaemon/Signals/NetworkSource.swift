import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// A network target that is followed for all pipelines that need it.
struct NetworkTargetFollower: Sendable {
    let watch: NetworkWatch
    let following: SignalRegistry.Following
    /// Set to true to end the tasks that follow the target.
    let ending = CurrentValue(false)
    var state: NetworkState
    var flapLimiter = FlapLimiter()
    /// The number of pipelines that need the target.
    var users = 1

    init(_ watch: NetworkWatch, _ following: SignalRegistry.Following, state: NetworkState) {
        self.watch = watch
        self.following = following
        self.state = state
    }

    /// The name of the row in `freshetctl signals`.
    static func row(of target: NetworkTarget) -> String {
        switch target {
        case .elsewhere: NetworkMonitor.signalName
        case .address(let address): "\(NetworkMonitor.signalName) \(address)"
        }
    }
}

extension NetworkTarget {
    /// The target of a pipeline: the address that the pipeline names, else the address of its origin if the URL
    /// contains an address, else the daemon's target, else `elsewhere`.
    init(_ definition: PipelineDefinition, daemonTarget: String?) {
        var candidates: [String?] = []
        if case .address(let text) = definition.refresh.needsNetwork { candidates.append(text) }
        candidates += definition.sources.map { source in
            if case .http(let source) = source, !source.isLocal, source.urlPlaceholder == nil {
                source.host
            } else {
                nil
            }
        }
        candidates.append(daemonTarget)
        let address = candidates.lazy.compactMap { $0.flatMap(IPAddress.init(_:)) }.first
        self = address.map(NetworkTarget.address) ?? .elsewhere
    }
}

extension NetworkState {
    /// Converts a fact of the network monitor to the engine's state.
    ///
    /// The engine takes another text for another path. If only the path of the other IP protocol changes, the fact has
    /// another text in the same epoch; then the state keeps the previous text.
    init(_ fact: NetworkFact, before: NetworkState?) {
        let isSamePath = before.map { $0.reachable && fact.isReachable && $0.epoch == fact.epoch } ?? false
        self.init(
            reachable: fact.isReachable, epoch: fact.epoch, changedAt: fact.changedAt,
            path: isSamePath ? before?.path ?? fact.description : fact.description)
    }
}
