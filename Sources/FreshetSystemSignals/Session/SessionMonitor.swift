import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signal `foreground`, and the sessions of users at this machine.
///
/// It fires when a local session became active (a user logged in, or switched to it) or was unlocked, according to
/// logind (org.freedesktop.login1(5)); messages of other senders are ignored. A lock does not fire, nor does a stopped
/// and continued process, a remote session, a greeter's or a service's session.
///
/// ```swift
/// let monitor = SessionMonitor(bus: BusConnection(loop, .system), scope: .user(geteuid()))
/// for await _ in monitor.foreground { … }
/// ```
///
/// After a loss of the bus, or of logind, sessions are listed again: a session at which a user arrived in between fires
/// once. Missing services are not an error: ``SessionFact/logind`` shows them.
///
/// **Order.** The fact changes, then the signal fires, both on the loop's thread.
///
/// **Threading.** All methods may be called from any thread.
public final class SessionMonitor: Sendable {
    /// The name of the signal.
    public static let signalName = "foreground"

    private struct State {
        var machine: SessionMachine
        /// The states of the subscriptions to the manager and to the sessions.
        var subscriptionStates: [BusSubscriptionState] = [.connecting, .connecting]
        var subscriptions: [BusSubscription] = []
    }

    private let source = SignalSource(signalName)
    let current: CurrentValue<SessionFact>
    private let bus: BusConnection?
    private let state: Mutex<State>

    /// Starts to follow logind. It always succeeds: see ``SessionFact/logind``.
    ///
    /// - Parameters:
    ///   - bus: The system bus; nil: no bus is used, and there are no sessions.
    ///   - scope: The users whose sessions count.
    public init(bus: BusConnection?, scope: SessionScope) {
        let machine = SessionMachine(scope, bus == nil ? .missing(reason: "the system bus is not used") : .pending)
        self.bus = bus
        current = CurrentValue(machine.fact)
        state = Mutex(State(machine: machine))
        if let bus { subscribe(to: bus) }
    }

    /// A session became active, or was unlocked.
    public var foreground: Signal { source.signal }

    /// The current fact.
    public var fact: SessionFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    public var facts: some AsyncSequence<SessionFact, Never> & Sendable { current }

    /// The number of logind's messages that fired nothing: a lock, a switch away, the end of a session, a session that
    /// does not count.
    public var minorChanges: UInt64 { state.withLock { $0.machine.minor } }

    /// Fires the signal without an event of logind. The known sessions are unchanged.
    package func fire(_ detail: String) { source.fire(detail) }

    // MARK: logind

    private func subscribe(to bus: BusConnection) {
        let matches = [
            BusMatch(valid: LogindMessage.name, path: LogindMessage.path, interface: LogindMessage.manager),
            BusMatch(
                valid: LogindMessage.name, pathNamespace: LogindMessage.sessionPaths,
                interface: LogindMessage.properties, member: "PropertiesChanged",
                firstArgument: LogindMessage.session),
        ]
        let subscriptions = matches.enumerated().map { index, match in
            bus.subscribe(match) { [weak self] subscriptionState in
                self?.subscriptionStateChanged(subscriptionState, index)
            } _: { [weak self] message in
                self?.received(message)
            }
        }
        state.withLock { $0.subscriptions = subscriptions }
    }

    private func subscriptionStateChanged(_ subscriptionState: BusSubscriptionState, _ index: Int) {
        let subscriptionStates = state.withLock { state in
            state.subscriptionStates[index] = subscriptionState
            return state.subscriptionStates
        }
        step { $0.logindBecame(SessionMachine.Logind(subscriptionStates)) }
    }

    private func received(_ message: BusMessage) {
        switch message.member {
        case "PropertiesChanged":
            let change = message.arguments.map(LogindMessage.change) ?? LogindMessage.Change(isVague: true)
            step { $0.changed(message.path, change) }
        case "SessionNew", "SessionRemoved":
            guard let arguments = message.arguments, arguments.count == 2, case .objectPath(let path) = arguments[1]
            else { return }
            let isNew = message.member == "SessionNew"
            step { isNew ? $0.added(path) : $0.removed(path) }
        default: break
        }
    }

    /// Lets the machine decide, and performs its actions. Called on the loop's thread.
    private func step(_ body: (inout SessionMachine) -> SessionMachine.Outcome) {
        let (outcome, listing, changed) = state.withLock { state in
            let before = state.machine.fact
            let outcome = body(&state.machine)
            return (outcome, state.machine.listing, state.machine.fact == before ? nil : state.machine.fact)
        }
        if let changed { current.value = changed }
        for arrival in outcome.arrivals { source.fire(arrival) }
        if outcome.lists { list(listing) }
        for path in outcome.requests { requestProperties(path, listing) }
    }

    private func list(_ listing: UInt64) {
        bus?.call("ListSessions", of: LogindMessage.manager, at: LogindMessage.path, on: LogindMessage.name) {
            [weak self] answer in
            let rows = answer.flatMap { LogindMessage.rows($0).map { .success($0) } ?? .failure(.unreadable) }
            switch rows {
            case .success(let rows): self?.step { $0.listed(rows, listing: listing) }
            case .failure(let error): self?.step { $0.listed(nil, reason: error.description, listing: listing) }
            }
        }
    }

    private func requestProperties(_ path: String, _ listing: UInt64) {
        bus?.call(
            "GetAll", of: LogindMessage.properties, at: path, on: LogindMessage.name, [.string(LogindMessage.session)]
        ) { [weak self] answer in
            // An error: the session has ended in the meantime.
            let properties = (try? answer.get()).flatMap(LogindMessage.properties)
            self?.step { $0.answered(path, properties, listing: listing) }
        }
    }
}

extension SessionMachine.Logind {
    /// logind is available when all subscriptions are active and have the same sender.
    init(_ subscriptionStates: [BusSubscriptionState]) {
        var senders: Set<String> = []
        var isPending = false
        for subscriptionState in subscriptionStates {
            switch subscriptionState {
            case .connecting: isPending = true
            case .active(sender: let sender?): senders.insert(sender)
            case .active(sender: nil):
                self = .missing(reason: "logind does not run")
                return
            case .refused(let reason), .disconnected(let reason):
                self = .missing(reason: reason)
                return
            }
        }
        if !isPending, senders.count == 1, let sender = senders.first {
            self = .received(sender: sender)
        } else {
            self = .pending
        }
    }
}
