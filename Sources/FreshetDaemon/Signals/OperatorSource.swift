import FreshetPipelines
import FreshetSignals

/// A signal that the daemon itself fires: its start, and requests of the operator.
@DaemonActor
final class OperatorSource: EventSource {
    nonisolated let name: String
    let fact: String
    /// Nil: the signal belongs to single pipelines and cannot be fired by hand.
    private let source: SignalSource?

    init(_ name: String, fact: String, _ source: SignalSource? = nil) {
        self.name = name
        self.fact = fact
        self.source = source
    }

    var signal: Signal? { source?.signal }
    var canBeFired: Bool { source != nil }
    func fire(_ detail: String) { source?.fire(detail) }

    /// The requests for runs: each pipeline counts as a subscriber. A request goes to its pipeline directly, so there
    /// is no signal.
    static func requests() -> SignalRegistry.Selection {
        { _ in [SourceReference(name: SignalName.operation)] }
    }
}
