import FreshetSignals
import FreshetSystemSignals

/// A fact for which runs wait.
protocol WaitingFact: Hashable, Sendable, CustomStringConvertible {
    /// Why runs wait, for people; nil: they do not wait.
    var obstacle: String? { get }
    /// Why nobody can be asked for the fact; nil: somebody can.
    var unavailable: String? { get }
}

/// The source of a fact for which runs wait. It exists while a pipeline uses it, publishes the fact, and passes the
/// reason to wait to the pipelines.
@DaemonActor
final class WaitingFactSource<Monitor: FactMonitor>: FollowingSource where Monitor.Fact: WaitingFact {
    /// The signal of a fact, for facts that have one.
    struct Firing {
        let signal: Signal
        let ignored: @Sendable () -> UInt64
        let fire: @Sendable (String) -> Void
    }

    nonisolated let name: String
    private let monitor: Monitor
    private let firing: Firing?
    private let recorder: SignalRecorder
    /// Passes the reason to wait to the pipelines; nil: they do not wait.
    private let pass: @Sendable (String?) -> Void
    private var isUsed = false

    init(
        _ name: String, _ monitor: Monitor, firing: Firing? = nil, _ recorder: SignalRecorder,
        pass: @escaping @Sendable (String?) -> Void
    ) {
        self.name = name
        self.monitor = monitor
        self.firing = firing
        self.recorder = recorder
        self.pass = pass
    }

    var signal: Signal? { firing?.signal }
    var fact: String { monitor.fact.description }
    var unavailable: String? { monitor.fact.unavailable }
    var ignored: UInt64? { firing?.ignored() }
    var logsAtInfo: Bool { firing != nil }
    var canBeFired: Bool { firing != nil }
    func fire(_ detail: String) { firing?.fire(detail) }

    func useBegan() {
        isUsed = true
        pass(monitor.fact.obstacle)
    }

    func useEnded() {
        isUsed = false
        pass(nil)
    }

    /// Publishes the fact, and passes it to the pipelines.
    func follow() async {
        for await fact in monitor.facts {
            recorder.fact(name, fact.description)
            if isUsed { pass(fact.obstacle) }
        }
    }
}
