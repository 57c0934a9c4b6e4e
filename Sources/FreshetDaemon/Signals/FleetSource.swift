import FreshetPipelines
import FreshetSignals

/// The checks of the other machines of the fleet. Each shared pipeline has its own signal.
@DaemonActor
final class FleetSource: EventSource {
    nonisolated let name = SignalName.fleet
    private let fleet: FleetService

    private init(_ fleet: FleetService) { self.fleet = fleet }

    /// The source of a pipeline that is shared.
    static func references(_ fleet: FleetService) -> SignalRegistry.Selection {
        { needs in
            guard let pipeline = needs.fleetMember else { return [] }
            return [
                SourceReference(name: SignalName.fleet, signal: fleet.trigger.signal(activatedBy: pipeline)) {
                    FleetSource(fleet)
                }
            ]
        }
    }

    var signal: Signal? { nil }
    var fact: String { fleet.fact }
    var unavailable: String? { fleet.knownObstacle }
    var canBeFired: Bool { false }
    func fire(_ detail: String) {}
}
