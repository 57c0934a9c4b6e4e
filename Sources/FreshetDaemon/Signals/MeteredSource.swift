import FreshetPipelines
import FreshetSystemSignals

/// Whether the connection is metered. It exists while a pipeline subscribes to `metered` or waits while the connection
/// is metered.
enum MeteredSource {
    /// The source of a pipeline that subscribes to it (`refresh.on`) or uses its fact (`refresh.metered`).
    @DaemonActor
    static func references(
        _ bus: BusConnection, _ engine: PipelineEngine, _ recorder: SignalRecorder
    ) -> SignalRegistry.Selection {
        { needs in
            let isSubscribed = needs.refresh.on.contains(.metered)
            guard isSubscribed || needs.refresh.whenMetered == .wait else { return [] }
            return [
                SourceReference(name: SignalName.metered, isSubscribed: isSubscribed) {
                    let monitor = MeteredMonitor(bus: bus)
                    return WaitingFactSource(
                        SignalName.metered, monitor,
                        firing: .init(
                            signal: monitor.becameUnmetered, ignored: { monitor.minorChanges },
                            fire: { monitor.fire($0) }), recorder
                    ) { engine.meteredChanged($0) }
                }
            ]
        }
    }
}

extension MeteredFact: WaitingFact {
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
