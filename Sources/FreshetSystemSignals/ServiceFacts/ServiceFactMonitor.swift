import FreshetEventLoop
import FreshetSignals
import Synchronization

/// A fact of the machine that a monitor follows.
package protocol FactMonitor: Sendable {
    associatedtype Fact: Hashable, Sendable
    associatedtype Facts: AsyncSequence<Fact, Never> & Sendable

    /// The current fact.
    var fact: Fact { get }
    /// The current fact, then each change; a slow reader gets the newest.
    var facts: Facts { get }
}

/// Follows a fact that a service of the bus states: its properties are read when the service appears, and whenever the
/// machine asks for it.
///
/// Messages of other senders are ignored; the policy of the system bus decides who may own the service's name. A
/// missing service is not an error, and is not started.
///
/// **Order.** The fact changes, then the firing is performed, both on the loop's thread.
///
/// **Threading.** All methods may be called from any thread.
final class ServiceFactMonitor<Machine: ServiceFactMachine>: Sendable {
    private struct State {
        var machine = Machine()
        var subscription: BusSubscription?
        /// Ends the wait for an answer. Made for the first wait.
        var timer: LoopTimer?
    }

    let current = CurrentValue(Machine().fact)
    private let bus: BusConnection
    private let timeout: Duration
    private let fire: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - bus: The system bus.
    ///   - timeout: How long the service may take to answer, and how long the fact may be pending for this reason, even
    ///     if other processes take the service's name meanwhile.
    ///   - fire: Called on the loop's thread with the detail of a firing.
    init(
        bus: BusConnection, timeout: Duration = FactService.timeout,
        fire: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.bus = bus
        self.timeout = timeout
        self.fire = fire
        let service = Machine.service
        let match = BusMatch(
            valid: service.name, path: service.path, interface: FactService.properties,
            member: "PropertiesChanged", firstArgument: service.name)
        let subscription = bus.subscribe(match) { [weak self] subscriptionState in
            self?.step(.service(FactServiceState(subscriptionState, of: service)))
        } _: { [weak self] message in
            self?.step(.changed(message.arguments))
        }
        state.withLock { $0.subscription = subscription }
    }

    /// The machine, for its counters.
    var machine: Machine { state.withLock { $0.machine } }

    /// Lets the machine decide, and performs its actions. Called on the loop's thread.
    private func step(_ event: ServiceFactEvent) { step { $0.receive(event) } }

    private func step(_ body: (inout Machine) -> ServiceFactOutcome) {
        let (outcome, request, changed) = state.withLock { state in
            let (before, first) = (state.machine.fact, state.machine.firstRequest)
            let outcome = body(&state.machine)
            if state.machine.firstRequest != first { setTimer(&state) }
            return (outcome, state.machine.request, state.machine.fact == before ? nil : state.machine.fact)
        }
        if let changed { current.value = changed }
        if let firing = outcome.firing { fire(firing) }
        if outcome.reads { read(request) }
    }

    /// A wait for an answer begins or has ended.
    private func setTimer(_ state: inout State) {
        guard state.machine.firstRequest != nil else {
            state.timer?.disarm()
            return
        }
        let timer =
            state.timer
            ?? LoopTimer(bus.loop, named: Machine.service.title) { [weak self] in
                self?.step { machine in
                    machine.waitIsOver()
                    return ServiceFactOutcome()
                }
            }
        state.timer = timer
        timer.arm(at: .now + timeout)
    }

    private func read(_ request: UInt64) {
        let service = Machine.service
        bus.call(
            "GetAll", of: FactService.properties, at: service.path, on: service.name, [.string(service.name)],
            timeout: timeout
        ) { [weak self] answer in
            switch answer {
            case .success(let values): self?.step(.answered(values, request: request))
            case .failure(let error):
                self?.step(.failed(reason: "\(service.title) does not answer: \(error)", request: request))
            }
        }
    }
}

extension FactService {
    static let properties = "org.freedesktop.DBus.Properties"
    /// How long a service may take to answer. It answers from memory; a longer answer counts as none.
    static let timeout: Duration = .seconds(10)
}
