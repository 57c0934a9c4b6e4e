import FreshetPipelines
import FreshetSystemSignals

/// Whether the machine runs on battery. It exists while a pipeline waits on battery.
enum PowerSource {
    private static let name = "power"

    /// The source of a pipeline that uses its fact (`refresh.power`).
    @DaemonActor
    static func references(
        _ bus: BusConnection, _ engine: PipelineEngine, _ recorder: SignalRecorder
    ) -> SignalRegistry.Selection {
        { needs in
            guard needs.refresh.onBattery == .wait else { return [] }
            return [
                SourceReference(name: name, isSubscribed: false) {
                    WaitingFactSource(name, PowerMonitor(bus: bus), recorder) { engine.powerChanged($0) }
                }
            ]
        }
    }
}

extension PowerFact: WaitingFact {
    /// Why runs wait that must not run on battery; nil: they do not wait. If nobody knows, they do not, since most
    /// machines without UPower have no battery. They only wait for an answer that is on its way.
    var obstacle: String? {
        switch self {
        case .battery, .pending: description
        case .mains, .unknown, .unavailable: nil
        }
    }
}
