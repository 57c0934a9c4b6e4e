import FreshetEventLoop
package import FreshetSignals
import Synchronization

/// The signal `metered`, and whether the connection of this machine is metered, according to NetworkManager.
///
/// It fires when the connection became unmetered: the last connection of which NetworkManager knew it was metered, and
/// the present one is not. NetworkManager's own guesses count. Messages of other senders are ignored; the policy of the
/// system bus decides who may own NetworkManager's name.
///
/// A missing NetworkManager is not an error, and is not started: ``MeteredFact/unavailable(reason:)`` shows it. It is
/// asked when it appears, and after each restart.
///
/// **Order.** The fact changes, then the signal fires, both on the loop's thread.
///
/// **Threading.** All methods may be called from any thread.
package final class MeteredMonitor: Sendable {
    /// The name of the signal.
    package static let signalName = "metered"
    /// How long NetworkManager may take to answer. It answers from memory; a longer answer counts as none.
    static let timeout: Duration = .seconds(10)

    private struct State {
        var machine = MeteredMachine()
        var subscription: BusSubscription?
    }

    private let source = SignalSource(signalName)
    private let current = CurrentValue(MeteredFact.pending)
    private let bus: BusConnection
    private let state = Mutex(State())

    /// Starts to follow NetworkManager. It always succeeds: see ``MeteredFact/unavailable(reason:)``.
    ///
    /// - Parameter bus: The system bus.
    package init(bus: BusConnection) {
        self.bus = bus
        let match = BusMatch(
            valid: NetworkManagerMessage.name, path: NetworkManagerMessage.path,
            interface: NetworkManagerMessage.properties, member: "PropertiesChanged",
            firstArgument: NetworkManagerMessage.name)
        let subscription = bus.subscribe(match) { [weak self] subscriptionState in
            self?.step { $0.serviceBecame(MeteredMachine.Service(subscriptionState)) }
        } _: { [weak self] message in
            let change = NetworkManagerMessage.change(message.arguments)
            self?.step { $0.changed(change) }
        }
        state.withLock { $0.subscription = subscription }
    }

    /// The connection became unmetered.
    package var becameUnmetered: Signal { source.signal }

    /// The current fact.
    package var fact: MeteredFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    package var facts: some AsyncSequence<MeteredFact, Never> & Sendable { current }

    /// The number of NetworkManager's messages that fired nothing: another property changed, or the connection became
    /// metered.
    package var minorChanges: UInt64 { state.withLock { $0.machine.minor } }

    /// Fires the signal without a message of NetworkManager. The fact is unchanged.
    package func fire(_ detail: String) { source.fire(detail) }

    /// Lets the machine decide, and performs its actions. Called on the loop's thread.
    private func step(_ body: (inout MeteredMachine) -> MeteredMachine.Outcome) {
        let (outcome, request, changed) = state.withLock { state in
            let before = state.machine.fact
            let outcome = body(&state.machine)
            return (outcome, state.machine.request, state.machine.fact == before ? nil : state.machine.fact)
        }
        if let changed { current.value = changed }
        if let firing = outcome.firing { source.fire(firing) }
        if outcome.reads { read(request) }
    }

    private func read(_ request: UInt64) {
        bus.call(
            "GetAll", of: NetworkManagerMessage.properties, at: NetworkManagerMessage.path,
            on: NetworkManagerMessage.name, [.string(NetworkManagerMessage.name)], timeout: Self.timeout
        ) { [weak self] answer in
            self?.step { machine in
                switch answer {
                case .success(let values):
                    return machine.answered(NetworkManagerMessage.properties(values), request: request)
                case .failure(let error):
                    machine.failed(reason: "NetworkManager does not answer: \(error)", request: request)
                    return MeteredMachine.Outcome()
                }
            }
        }
    }
}

extension MeteredMachine.Service {
    init(_ subscriptionState: BusSubscriptionState) {
        switch subscriptionState {
        case .connecting: self = .pending
        case .active(sender: let sender?): self = .received(sender: sender)
        case .active(sender: nil): self = .missing(reason: "NetworkManager does not run")
        case .refused(let reason), .disconnected(let reason): self = .missing(reason: reason)
        }
    }
}
