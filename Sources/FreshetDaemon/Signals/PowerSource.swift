import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// Whether the machine runs on battery. It exists while a pipeline waits on battery.
@DaemonActor
final class PowerSource: FollowingSource {
    private static let row = "power"

    nonisolated let name = "power"
    private let monitor: PowerMonitor
    private let engine: PipelineEngine
    private let recorder: SignalRecorder
    private var isUsed = false

    private init(_ monitor: PowerMonitor, _ engine: PipelineEngine, _ recorder: SignalRecorder) {
        self.monitor = monitor
        self.engine = engine
        self.recorder = recorder
    }

    /// The source of a pipeline that uses its fact (`refresh.power`).
    static func references(
        _ bus: BusConnection, _ engine: PipelineEngine, _ recorder: SignalRecorder
    ) -> SignalRegistry.Selection {
        { definition in
            guard definition.refresh.onBattery == .wait else { return [] }
            return [
                SourceReference(name: row, isSubscribed: false) {
                    PowerSource(PowerMonitor(bus: bus), engine, recorder)
                }
            ]
        }
    }

    var signal: Signal? { nil }
    var fact: String { monitor.fact.description }
    var canBeFired: Bool { false }
    func fire(_ detail: String) {}

    var unavailable: String? {
        guard case .unavailable(let reason) = monitor.fact else { return nil }
        return reason
    }

    func useBegan() {
        isUsed = true
        engine.powerChanged(monitor.fact.obstacle)
    }

    func useEnded() {
        isUsed = false
        engine.powerChanged(nil)
    }

    /// Publishes the fact, and passes it to the pipelines.
    func follow() async {
        for await fact in monitor.facts {
            recorder.fact(name, fact.description)
            if isUsed { engine.powerChanged(fact.obstacle) }
        }
    }
}

extension PowerFact {
    /// Why runs wait that must not run on battery; nil: they do not wait. If nobody knows, they do not, since most
    /// machines without UPower have no battery. They only wait for an answer that is on its way.
    var obstacle: String? {
        switch self {
        case .battery, .pending: description
        case .mains, .unknown, .unavailable: nil
        }
    }
}
