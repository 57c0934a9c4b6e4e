import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// User sessions on this machine.
extension Supervisor {
    /// Whether the daemon is the system service and not a user's own service. A user's own daemon only looks for
    /// sessions of that user.
    static func isSystemService(_ options: DaemonOptions) -> Bool {
        ServiceDirectories.isSystemService(environment: options.environment, userID: options.owner)
    }

    /// Starts to watch sessions. A missing logind is logged only once, for sleep and sessions together.
    nonisolated func watchSessions(_ bus: BusConnection) -> SessionMonitor {
        SessionMonitor(bus: bus, scope: Self.isSystemService(options) ? .local : .user(geteuid()))
    }

    /// Publishes the facts of sessions.
    func followSessions() {
        guard let sessions = parts?.sessions else { return }
        adopt { [registry] in
            for await fact in sessions.facts { registry.fact(SignalName.foreground, fact.description) }
        }
    }

    /// The row `foreground` of `freshetctl signals`.
    func foregroundStatus() -> SignalStatus {
        let fact = parts?.sessions.fact
        return registry.status(
            SignalName.foreground, fact: fact?.description ?? "not known", unavailable: fact?.missing,
            ignored: parts?.sessions.minorChanges)
    }
}

extension SessionFact {
    /// Why no sessions are detected; nil: logind is available.
    var missing: String? {
        guard case .unavailable(let reason) = logind else { return nil }
        return "no logind: \(reason)"
    }
}
