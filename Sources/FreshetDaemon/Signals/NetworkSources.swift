import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// The network targets of all pipelines: their states, and the messages about their changes.
@DaemonActor
final class NetworkSources {
    /// The target `elsewhere`, which is always followed. Its fact stands for the network as a whole.
    let elsewhere: NetworkSource
    /// The address of the daemon's configuration (`network-target`).
    var daemonTarget: String?
    /// Called when the state of a target that pipelines use has changed. The pipelines have got the change already
    /// (``NetworkSource/feed``).
    var onChange: @DaemonActor () -> Void = {}
    private let monitor: NetworkMonitor
    private let context: DaemonContext
    private let recorder: SignalRecorder
    /// Stands for the signal of a target in a pipeline's references, because the feed brings it.
    private let noSignal = Signal.never
    /// The targets that pipelines use.
    private var used: [NetworkTarget: NetworkSource] = [:]
    /// Expires when a summary of network changes is due.
    private var timer: LoopTimer?

    init(_ monitor: NetworkMonitor, _ context: DaemonContext, _ recorder: SignalRecorder) {
        self.monitor = monitor
        self.context = context
        self.recorder = recorder
        elsewhere = NetworkSource(.elsewhere, monitor, recorder)
        elsewhere.owner = self
    }

    // MARK: Pipelines

    /// A pipeline always uses the state of its target, and subscribes to its signal if `on` names the network. The feed
    /// brings the signal together with the state, so it is not among the pipeline's other signals.
    func references(for needs: SignalNeeds) -> [SourceReference] {
        let target = needs.target
        let isSubscribed = needs.refresh.on.contains(.network)
        return [
            SourceReference(name: NetworkSource.name(of: target), isSubscribed: isSubscribed, signal: noSignal) {
                [self] in
                let source = NetworkSource(target, monitor, recorder)
                source.owner = self
                return source
            }
        ]
    }

    func target(of definition: PipelineDefinition) -> NetworkTarget {
        NetworkTarget(definition, daemonTarget: daemonTarget)
    }

    func isUsed(_ target: NetworkTarget) -> Bool { used[target] != nil }

    /// The state and the signal of a target that a pipeline uses.
    func feed(of target: NetworkTarget) -> NetworkFeed { (used[target] ?? elsewhere).feed }

    /// The path to a target, or why there is none; nil: no pipeline uses the target.
    func path(to target: NetworkTarget) -> String? { used[target]?.watch.fact.description }

    /// The path to a target, for a status: if there is no route, the text also names the address without a route.
    func detailedPath(to target: NetworkTarget) -> String? {
        guard let fact = used[target]?.watch.fact else { return nil }
        guard let name = nameWithoutRoute(of: target) else { return fact.description }
        return "\(fact.description) to \(target == .elsewhere ? "the " : "")\(name)"
    }

    /// The target to which there is no route: an address, or the internet; nil: there is one, or the target is not
    /// reachable for another reason.
    func nameWithoutRoute(of target: NetworkTarget) -> String? {
        guard used[target]?.watch.fact.obstacle == .noRoute else { return nil }
        return switch target {
        case .elsewhere: FreshetControl.PipelineStatus.internet
        case .address(let address): "\(address)"
        }
    }

    func began(_ source: NetworkSource) { used[source.target] = source }

    func ended(_ source: NetworkSource) { used[source.target] = nil }

    // MARK: Directly connected networks

    /// The changes of the directly connected networks.
    nonisolated var directNetworks: CurrentValue<UInt64?> { monitor.directNetworks }

    /// Whether directly connected networks matter: there is no route to elsewhere. If that route goes away, the direct
    /// networks change too.
    var needsDirectNetworks: Bool { used[.elsewhere]?.watch.fact.isReachable == false }

    // MARK: Changes

    func changed(_ source: NetworkSource, before: NetworkState) {
        if source.state.reachable != before.reachable {
            logChange(of: source)
        } else if source.state.reachable, source.state.path != before.path {
            logChange(of: source, message: JournalMessage.network.text)
        }
        onChange()
    }

    /// Logs the first change of a network immediately, and counts further changes until the network is stable.
    private func logChange(of source: NetworkSource, message: Logger.Message? = nil) {
        logSummaries()
        let decision = source.flapLimiter.changed(at: .now)
        log(source, message: message, level: decision == .log ? .info : .debug)
        armTimer()
    }

    /// Logs the summaries of network changes that are due.
    private func logSummaries() {
        let now = BootInstant.now
        for source in used.values {
            switch source.flapLimiter.elapsed(at: now) {
            case .quiet(let changes): log(source, changes: changes)
            case .goesOn(let changes): log(source, changes: changes, message: "the network keeps changing")
            case nil: break
            }
        }
        armTimer()
    }

    private func armTimer() {
        guard let due = used.values.compactMap(\.flapLimiter.due).min() else { return }
        let timer =
            timer
            ?? LoopTimer(context.loop) { [weak self, tasks = context.tasks] in
                tasks.add { [weak self] in await self?.logSummaries() }
            }
        self.timer = timer
        timer.arm(at: due.continuous)
    }

    private func log(
        _ source: NetworkSource, changes: Int? = nil, message: Logger.Message? = nil, level: Logger.Level = .info
    ) {
        var fields: [JournalField: Logger.MetadataValue] = [
            .target: .string("\(source.target)"), .path: .string(source.watch.fact.description),
        ]
        if let changes { fields[.changes] = .stringConvertible(changes) }
        let state: Logger.Message =
            source.state.reachable ? "the network is reachable" : "the network is not reachable"
        context.log.log(.network, text: message ?? state, level: level, fields)
    }
}
