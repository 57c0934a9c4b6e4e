import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// Whether the connection is metered. It exists while a pipeline subscribes to `metered` or waits while the connection
/// is metered.
@DaemonActor
final class MeteredSource: FollowingSource {
    nonisolated let name = SignalName.metered
    private let monitor: MeteredMonitor
    private let engine: PipelineEngine
    private let recorder: SignalRecorder
    private var isUsed = false

    private init(_ monitor: MeteredMonitor, _ engine: PipelineEngine, _ recorder: SignalRecorder) {
        self.monitor = monitor
        self.engine = engine
        self.recorder = recorder
    }

    /// The source of a pipeline that subscribes to it (`refresh.on`) or uses its fact (`refresh.metered`).
    static func references(
        _ bus: BusConnection, _ engine: PipelineEngine, _ recorder: SignalRecorder
    ) -> SignalRegistry.Selection {
        { definition in
            let isSubscribed = definition.refresh.on.contains(.metered)
            guard isSubscribed || definition.refresh.whenMetered == .wait else { return [] }
            return [
                SourceReference(name: SignalName.metered, isSubscribed: isSubscribed) {
                    MeteredSource(MeteredMonitor(bus: bus), engine, recorder)
                }
            ]
        }
    }

    var signal: Signal? { monitor.becameUnmetered }
    var fact: String { monitor.fact.description }
    var ignored: UInt64? { monitor.minorChanges }
    var logsAtInfo: Bool { true }
    func fire(_ detail: String) { monitor.fire(detail) }

    var unavailable: String? {
        guard case .unavailable(let reason) = monitor.fact else { return nil }
        return reason
    }

    func useBegan() {
        isUsed = true
        engine.meteredChanged(monitor.fact.obstacle)
    }

    func useEnded() {
        isUsed = false
        engine.meteredChanged(nil)
    }

    /// Publishes the fact, and passes it to the pipelines.
    func follow() async {
        for await fact in monitor.facts {
            recorder.fact(name, fact.description)
            if isUsed { engine.meteredChanged(fact.obstacle) }
        }
    }
}

extension MeteredFact {
    /// Why runs wait that must not use a metered connection; nil: they do not wait. If nobody knows whether the
    /// connection is metered, they do not, since a stale copy is worse than a cost that nobody stated. They only wait
    /// for an answer that is on its way.
    var obstacle: String? {
        switch self {
        case .metered, .pending, .connecting: description
        case .unmetered, .unknown, .unavailable: nil
        }
    }
}
