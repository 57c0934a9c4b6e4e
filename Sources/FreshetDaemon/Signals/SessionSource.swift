import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// User sessions on this machine.
extension Supervisor {
    /// Starts to watch sessions. A missing logind is logged only once, for sleep and sessions together.
    nonisolated func watchSessions(_ bus: BusConnection) -> SessionMonitor {
        SessionMonitor(bus: bus, scope: options.isSystemService ? .local : .user(geteuid()))
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
