import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// User sessions on this machine.
@DaemonActor
final class SessionSource: FollowingSource {
    nonisolated let name = SignalName.foreground
    private let monitor: SessionMonitor
    private let recorder: SignalRecorder

    init(_ monitor: SessionMonitor, _ recorder: SignalRecorder) {
        self.monitor = monitor
        self.recorder = recorder
    }

    var signal: Signal? { monitor.foreground }
    var fact: String { monitor.fact.description }
    var ignored: UInt64? { monitor.minorChanges }
    var logsAtInfo: Bool { true }
    func fire(_ detail: String) { monitor.fire(detail) }

    /// A missing logind is logged only once, by ``SleepSource``.
    var unavailable: String? {
        guard case .unavailable(let reason) = monitor.fact.logind else { return nil }
        return "no logind: \(reason)"
    }

    nonisolated func follow() async {
        for await fact in monitor.facts { recorder.fact(name, fact.description) }
    }
}
