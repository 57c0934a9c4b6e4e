import FreshetEventLoop
import FreshetModel
import FreshetNATS

/// A shared pipeline of this member: its machine, and what the machine's actions need. Only ``FleetClient`` uses it, on
/// the loop's thread.
final class FleetMember {
    let subject: FleetSubject
    let key: FleetKey
    var machine: FleetMachine
    var fire: @Sendable (String) -> Void
    /// The run that waits for a decision.
    var waiter: CheckedContinuation<FleetDecision?, Never>?
    /// Reads the content that is to be published.
    var content: FleetClient.ContentReader?
    /// The changes of the claim, while they matter.
    var claims: NATSSubscription?
    var timer: LoopTimer?

    init(_ subject: FleetSubject, _ machine: FleetMachine, fire: @escaping @Sendable (String) -> Void) {
        self.subject = subject
        key = FleetKey(subject)
        self.machine = machine
        self.fire = fire
    }

    func decide(_ decision: FleetDecision?) {
        waiter?.resume(returning: decision)
        waiter = nil
    }

    func end() {
        decide(nil)
        claims?.cancel()
        timer?.disarm()
    }
}
