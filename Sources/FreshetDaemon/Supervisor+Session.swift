import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// People's sessions at this machine.
extension Supervisor {
    /// A person's own daemon is that person's business, and so is who it looks for.
    static func isSystemService(_ options: DaemonOptions) -> Bool {
        ServiceDirectories.isSystemService(environment: options.environment, userID: options.owner)
    }

    /// That logind is missing is told of sleep, once, for both.
    nonisolated func watchSessions(_ bus: BusConnection) -> SessionMonitor {
        SessionMonitor(bus: bus, scope: Self.isSystemService(options) ? .local : .user(geteuid()))
    }

    /// Tells those who follow what becomes of them.
    func followSessions() {
        guard let sessions = parts?.sessions else { return }
        adopt { [book] in
            for await fact in sessions.facts { book.fact(SignalName.foreground, fact.description) }
        }
    }

    /// The row of `freshetctl signals`.
    func foregroundStatus() -> SignalStatus {
        let fact = parts?.sessions.fact
        return book.status(
            SignalName.foreground, fact: fact?.description ?? "not known", unavailable: fact?.missing,
            ignored: parts?.sessions.minorChanges)
    }
}

extension SessionFact {
    /// What is missing to hear of sessions; nil: nothing.
    var missing: String? {
        guard case .unavailable(let reason) = logind else { return nil }
        return "no logind: \(reason)"
    }
}
