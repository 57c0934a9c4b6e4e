import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signal `foreground`, and which sessions of people there are at this machine.
///
/// It fires when a local session became active (somebody logged in, or switched to it) or was unlocked, as logind says
/// (org.freedesktop.login1(5)), and nobody else is believed. A lock, a stop and its continuation, a session of another
/// machine, a greeter's or a service's fire nothing.
///
/// ```swift
/// let monitor = SessionMonitor(bus: BusConnection(loop, .system), scope: .user(geteuid()))
/// for await _ in monitor.foreground { … }
/// ```
///
/// After a loss of the bus, or of logind, sessions are listed anew: one at which somebody arrived in between fires once.
/// What is missing is no error: ``SessionFact/logind`` says so.
///
/// **Order.** The fact changes, then the signal fires, both on the loop's thread.
///
/// **Threading.** All methods may be called from any thread.
public final class SessionMonitor: Sendable {
    /// The name of the signal.
    public static let signalName = "foreground"

    private struct State {
        var machine: SessionMachine
        /// How the subscriptions stand, to the manager and to the sessions.
        var standings: [BusSubscriptionState] = [.connecting, .connecting]
        var subscriptions: [BusSubscription] = []
    }

    private let source = SignalSource(signalName)
    let current: CurrentValue<SessionFact>
    private let bus: BusConnection?
    private let state: Mutex<State>

    /// Begins to listen to logind. It always succeeds: see ``SessionFact/logind``.
    ///
    /// - Parameters:
    ///   - bus: the system bus; nil: there is none, and no session.
    ///   - scope: whose sessions count.
    public init(bus: BusConnection?, scope: SessionScope) {
        let machine = SessionMachine(scope, bus == nil ? .missing(reason: "the system bus is not used") : .pending)
        self.bus = bus
        current = CurrentValue(machine.fact)
        state = Mutex(State(machine: machine))
        if let bus { listen(to: bus) }
    }

    /// A session became active, or was unlocked.
    public var foreground: Signal { source.signal }

    /// The present state.
    public var fact: SessionFact { current.value }

    /// The present state first, then what becomes of it; a slow reader gets the newest.
    public var facts: some AsyncSequence<SessionFact, Never> & Sendable { current }

    /// How often logind told of what fired nothing: a lock, a switch away, the end of a session, a session that does not
    /// count.
    public var minorChanges: UInt64 { state.withLock { $0.machine.minor } }

    /// Fires the signal by hand. What is known of sessions stays.
    package func raise(_ detail: String) { source.fire(detail) }

    // MARK: logind

    private func listen(to bus: BusConnection) {
        let matches = [
            BusMatch(valid: LogindMessage.name, path: LogindMessage.path, interface: LogindMessage.manager),
            BusMatch(
                valid: LogindMessage.name, pathNamespace: LogindMessage.sessionPaths,
                interface: LogindMessage.properties, member: "PropertiesChanged",
                firstArgument: LogindMessage.session),
        ]
        let subscriptions = matches.enumerated().map { index, match in
            bus.subscribe(match) { [weak self] standing in
                self?.stands(standing, index)
            } _: { [weak self] message in
                self?.heard(message)
            }
        }
        state.withLock { $0.subscriptions = subscriptions }
    }

    private func stands(_ standing: BusSubscriptionState, _ index: Int) {
        let standings = state.withLock { state in
            state.standings[index] = standing
            return state.standings
        }
        step { $0.logindBecame(SessionMachine.Logind(standings)) }
    }

    private func heard(_ message: BusMessage) {
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

    /// Has the machine decide, and does what it says. On the loop's thread.
    private func step(_ body: (inout SessionMachine) -> SessionMachine.Outcome) {
        let (outcome, listing, changed) = state.withLock { state in
            let before = state.machine.fact
            let outcome = body(&state.machine)
            return (outcome, state.machine.listing, state.machine.fact == before ? nil : state.machine.fact)
        }
        if let changed { current.value = changed }
        for arrival in outcome.arrivals { source.fire(arrival) }
        if outcome.lists { list(listing) }
        for path in outcome.asks { ask(path, listing) }
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

    private func ask(_ path: String, _ listing: UInt64) {
        bus?.call(
            "GetAll", of: LogindMessage.properties, at: path, on: LogindMessage.name, [.string(LogindMessage.session)]
        ) { [weak self] answer in
            // An error: it has gone since.
            let properties = (try? answer.get()).flatMap(LogindMessage.properties)
            self?.step { $0.answered(path, properties, listing: listing) }
        }
    }
}

extension SessionMachine.Logind {
    /// logind can be heard when all subscriptions are in force, and to the same.
    init(_ standings: [BusSubscriptionState]) {
        var senders: Set<String> = []
        var isPending = false
        for standing in standings {
            switch standing {
            case .connecting: isPending = true
            case .inForce(sender: let sender?): senders.insert(sender)
            case .inForce(sender: nil):
                self = .missing(reason: "logind does not run")
                return
            case .refused(let reason), .disconnected(let reason):
                self = .missing(reason: reason)
                return
            }
        }
        if !isPending, senders.count == 1, let sender = senders.first {
            self = .heard(sender: sender)
        } else {
            self = .pending
        }
    }
}
