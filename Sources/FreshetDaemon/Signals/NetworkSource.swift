import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// A network target that pipelines need. ``NetworkSources`` has all of them.
@DaemonActor
final class NetworkSource: FollowingSource {
    nonisolated let name: String
    let target: NetworkTarget
    let watch: NetworkWatch
    private let monitor: NetworkMonitor
    private let recorder: SignalRecorder
    /// The state and the signal for the pipelines that use the target.
    nonisolated let feed: NetworkFeed
    /// Passes each change on to the pipelines immediately.
    private let observation: NetworkObservation
    /// The state that was logged last; it is only kept up to date while a pipeline uses the target.
    private(set) var state: NetworkState
    var flapLimiter = FlapLimiter()
    weak var owner: NetworkSources?

    init(_ target: NetworkTarget, _ monitor: NetworkMonitor, _ recorder: SignalRecorder) {
        name = Self.name(of: target)
        self.target = target
        self.monitor = monitor
        self.recorder = recorder
        watch = monitor.watch(target)
        state = NetworkState(watch.fact, before: nil)
        feed = NetworkFeed(state)
        observation = watch.observe { [feed] fact, cause in
            feed.publish(cause) { NetworkState(fact, before: $0) }
        }
    }

    nonisolated static func name(of target: NetworkTarget) -> String {
        switch target {
        case .elsewhere: NetworkMonitor.signalName
        case .address(let address): "\(NetworkMonitor.signalName) \(address)"
        }
    }

    var signal: Signal? { watch.signal }
    var fact: String { watch.fact.text }
    var ignored: UInt64? { monitor.minorChanges(of: target) }
    func fire(_ detail: String) { monitor.fire(target, detail) }

    var unavailable: String? {
        guard case .unavailable(let reason) = monitor.availability else { return nil }
        return reason
    }

    func useBegan() {
        state = NetworkState(watch.fact, before: nil)
        flapLimiter = FlapLimiter()
        owner?.began(self)
    }

    func useEnded() { owner?.ended(self) }

    func follow() async {
        for await fact in watch.facts {
            recorder.fact(SignalName.network, row: name, fact.text)
            guard let owner, owner.isUsed(target) else { continue }
            let before = state
            state = NetworkState(fact, before: before)
            if state != before { owner.changed(self, before: before) }
        }
    }
}

extension NetworkTarget {
    /// The target of a pipeline: the address that the pipeline names, else the address of its origin if the URL
    /// contains an address, else the daemon's target, else `elsewhere`.
    init(_ definition: PipelineDefinition, daemonTarget: String?) {
        if case .address(let text) = definition.refresh.needsNetwork, let address = IPAddress(text) {
            self = .address(address)
            return
        }
        for source in definition.sources {
            guard case .http(let source) = source, !source.isLocal, source.urlPlaceholder == nil, source.mirrors == nil,
                let address = IPAddress(source.host)
            else { continue }
            self = .address(address)
            return
        }
        self = daemonTarget.flatMap(IPAddress.init(_:)).map(NetworkTarget.address) ?? .elsewhere
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
            reachable: fact.isReachable, epoch: fact.epoch, changedAt: BootInstant(fact.changedAt),
            path: isSamePath ? before?.path ?? fact.description : fact.description)
    }
}

extension NetworkFact {
    /// The fact in `freshetctl signals`.
    var text: String { isReachable ? "reachable \(self)" : "not reachable: \(self)" }
}
