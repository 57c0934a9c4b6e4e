import FreshetEventLoop
import FreshetSignals
import Synchronization

/// Whether this machine runs on battery, according to UPower.
///
/// Messages of other senders are ignored; the policy of the system bus decides who may own UPower's name. A missing
/// UPower is not an error, and is not started: ``PowerFact/unavailable(reason:)`` shows it. UPower is asked when it
/// appears, and after each restart. (logind has this property too, but sends no signal when it changes.)
///
/// **Threading.** All methods may be called from any thread.
package final class PowerMonitor: Sendable {
    /// How long UPower may take to answer, and how long the fact may be pending for this reason. UPower answers from
    /// memory; a longer answer counts as none.
    static let timeout: Duration = .seconds(10)

    private struct State {
        var machine = PowerMachine()
        var subscription: BusSubscription?
        /// Ends the wait for an answer. Made for the first wait.
        var timer: LoopTimer?
    }

    private let current = CurrentValue(PowerFact.pending)
    private let bus: BusConnection
    private let timeout: Duration
    private let state = Mutex(State())

    /// Starts to follow UPower. It always succeeds: see ``PowerFact/unavailable(reason:)``.
    ///
    /// - Parameter bus: The system bus.
    package convenience init(bus: BusConnection) { self.init(bus: bus, timeout: Self.timeout) }

    init(bus: BusConnection, timeout: Duration) {
        self.bus = bus
        self.timeout = timeout
        let match = BusMatch(
            valid: UPowerMessage.name, path: UPowerMessage.path, interface: UPowerMessage.properties,
            member: "PropertiesChanged", firstArgument: UPowerMessage.name)
        let subscription = bus.subscribe(match) { [weak self] subscriptionState in
            self?.step { $0.serviceBecame(PowerMachine.Service(subscriptionState)) }
        } _: { [weak self] message in
            let change = UPowerMessage.change(message.arguments)
            self?.step { $0.changed(change) }
        }
        state.withLock { $0.subscription = subscription }
    }

    /// The current fact.
    package var fact: PowerFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    package var facts: some AsyncSequence<PowerFact, Never> & Sendable { current }

    /// Lets the machine decide, and performs its action. Called on the loop's thread.
    private func step(_ body: (inout PowerMachine) -> Bool) {
        let (reads, request, changed) = state.withLock { state in
            let (before, first) = (state.machine.fact, state.machine.firstRequest)
            let reads = body(&state.machine)
            if state.machine.firstRequest != first { setTimer(&state) }
            return (reads, state.machine.request, state.machine.fact == before ? nil : state.machine.fact)
        }
        if let changed { current.value = changed }
        if reads { read(request) }
    }

    /// A wait for an answer begins or has ended.
    private func setTimer(_ state: inout State) {
        guard state.machine.firstRequest != nil else {
            state.timer?.disarm()
            return
        }
        let timer =
            state.timer
            ?? LoopTimer(bus.loop, named: "UPower") { [weak self] in
                self?.step { machine in
                    machine.waitIsOver()
                    return false
                }
            }
        state.timer = timer
        timer.arm(at: .now + timeout)
    }

    private func read(_ request: UInt64) {
        bus.call(
            "GetAll", of: UPowerMessage.properties, at: UPowerMessage.path, on: UPowerMessage.name,
            [.string(UPowerMessage.name)], timeout: timeout
        ) { [weak self] answer in
            self?.step { machine in
                switch answer {
                case .success(let values): return machine.answered(UPowerMessage.fact(values), request: request)
                case .failure(let error):
                    machine.failed(reason: "UPower does not answer: \(error)", request: request)
                    return false
                }
            }
        }
    }
}

extension PowerMachine.Service {
    init(_ subscriptionState: BusSubscriptionState) {
        switch subscriptionState {
        case .connecting: self = .pending
        case .active(sender: let sender?): self = .received(sender: sender)
        case .active(sender: nil): self = .missing(reason: "UPower does not run")
        case .refused(let reason), .disconnected(let reason): self = .missing(reason: reason)
        }
    }
}
