public import FreshetEventLoop
import FreshetSignals
import Glibc

/// Whether a bus can be used.
public enum BusAvailability: Hashable, Sendable, CustomStringConvertible {
    case connecting
    case connected
    /// The reason is a sentence for people. If the bus comes back, or comes at all, it is connected to.
    case unavailable(reason: String)

    public var description: String {
        switch self {
        case .connecting: "connecting"
        case .connected: "connected"
        case .unavailable(let reason): reason
        }
    }
}

/// A connection to a message bus (D-Bus) on an event loop, by sd-bus: its signals, and calls of methods.
///
/// ```swift
/// let bus = BusConnection(loop, .system)
/// let match = try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded")
/// let subscription = bus.subscribe(match) { message in … }
/// ```
///
/// **A bus comes and goes.** It is no error if there is none. A socket in the file system that does not exist, or that
/// nobody listens on, is waited for by inotify(7), without a wake-up until then. A connection that is lost is made
/// anew, and what was subscribed to is subscribed to again; `BusReconnection` has the pauses. What was said in
/// between is lost: a subscription tells when it is in force again (``BusSubscriptionState``), which is the time to ask for the
/// present state.
///
/// **Who speaks.** Any peer may send a signal to a connection directly, whatever that has subscribed to. So signals are
/// compared with the matches here too, and a match with a well-known sender hears only the connection that owns that
/// name at the time, which is followed.
///
/// **Bounds.** `BusLink.messagesPerTurn` messages are handled in a turn of the loop; the rest wait in the socket.
/// A message is released when its handlers have returned. Nothing is polled.
///
/// **Threading.** All methods may be called from any thread. Handlers run on the loop's thread, and must not block. What
/// is called on the loop's thread is done at once, else in the loop's next turn.
public final class BusConnection: Sendable {
    /// Which bus.
    public enum Bus: Hashable, Sendable {
        /// `DBUS_SYSTEM_BUS_ADDRESS`, or the usual place below /run.
        case system
        /// `DBUS_SESSION_BUS_ADDRESS`, or `bus` in `XDG_RUNTIME_DIR`.
        case session
    }

    private let loop: EventLoop
    private let link: BusLink
    private let current: CurrentValue<BusAvailability>

    /// Begins to connect. It always succeeds: see ``availability``.
    ///
    /// - Parameters:
    ///   - loop: where the bus is listened to.
    ///   - bus: which bus.
    ///   - address: where that is, if not where the environment says (D-Bus specification, "Server Addresses").
    public init(_ loop: EventLoop, _ bus: Bus = .system, address: String? = nil) {
        self.loop = loop
        let found = address ?? BusAddress.of(bus) { name in getenv(name).map { String(cString: $0) } }
        let current = CurrentValue(BusAvailability.connecting)
        self.current = current
        link = BusLink(loop, address: found) { current.value = $0 }
        // Weakly: a loop that never runs must not keep what belongs to it.
        loop.perform(named: "D-Bus") { [weak link] in link?.start() }
    }

    deinit {
        loop.perform(named: "D-Bus") { [link] in link.end() }
    }

    /// Whether the bus can be used at present.
    public var availability: BusAvailability { current.value }

    /// The present availability first, then what becomes of it; a slow reader gets the newest.
    public var availabilities: some AsyncSequence<BusAvailability, Never> & Sendable { current }

    /// Hears the signals that a match wants.
    ///
    /// - Parameters:
    ///   - match: which signals.
    ///   - onStanding: told how the subscription stands: at once, and at each change.
    ///   - onStranger: told of each signal that is wanted but for its sender, and so is not heard.
    ///   - handler: gets each signal, in the order in which they were sent.
    /// - Returns: the subscription, which ends when it is cancelled or released.
    public func subscribe(
        _ match: BusMatch, onStanding: @escaping @Sendable (BusSubscriptionState) -> Void = { _ in },
        onStranger: @escaping @Sendable () -> Void = {}, _ handler: @escaping @Sendable (BusMessage) -> Void
    ) -> BusSubscription {
        let subscriber = BusLink.Subscriber(onStanding: onStanding, onStranger: onStranger, handler: handler)
        onLoop { $0.subscribe(subscriber, to: match) }
        return BusSubscription { [weak self] in self?.onLoop { $0.unsubscribe(subscriber, from: match) } }
    }

    /// Calls a method of an object.
    ///
    /// - Parameters:
    ///   - member: the method.
    ///   - interface: whose method it is.
    ///   - path: the object.
    ///   - destination: the bus name of the object's service. It is not started if it does not run.
    ///   - arguments: of basic types.
    ///   - timeout: how long to wait for the answer.
    ///   - reply: gets the answer, or why there is none, on the loop's thread, once, unless the connection object goes
    ///     away before.
    public func call(
        _ member: String, of interface: String, at path: String, on destination: String, _ arguments: [BusValue] = [],
        timeout: Duration = .seconds(25), reply: @escaping @Sendable (Result<[BusValue], BusError>) -> Void
    ) {
        let request = BusLink.Request(
            destination: destination, path: path, interface: interface, member: member, arguments: arguments,
            timeout: timeout)
        onLoop { $0.call(request, reply) }
    }

    /// Asks for a property of an object (org.freedesktop.DBus.Properties).
    ///
    /// - Parameters:
    ///   - property: its name.
    ///   - interface: the interface that it belongs to.
    ///   - path: the object.
    ///   - destination: the name of the service that has the object.
    ///   - reply: gets the value, as of ``call(_:of:at:on:_:timeout:reply:)``.
    public func getProperty(
        _ property: String, of interface: String, at path: String, from destination: String,
        reply: @escaping @Sendable (Result<BusValue, BusError>) -> Void
    ) {
        call(
            "Get", of: "org.freedesktop.DBus.Properties", at: path, on: destination,
            [.string(interface), .string(property)]
        ) { answer in
            reply(
                answer.flatMap { values in
                    guard case .variant(let value)? = values.first else { return .failure(.unreadable) }
                    return .success(value)
                })
        }
    }

    /// The name that the bus gave this connection, for tests; nil without a bus. On the loop's thread.
    var uniqueName: String? { link.uniqueName }

    private func onLoop(_ body: @escaping @Sendable (BusLink) -> Void) {
        if loop.isCurrent {
            body(link)
        } else {
            loop.perform(named: "D-Bus") { [link] in body(link) }
        }
    }
}

/// How a subscription stands.
public enum BusSubscriptionState: Hashable, Sendable {
    /// The bus has not been reached yet, or has not confirmed the match yet.
    case connecting
    /// The bus has confirmed the match: what is sent from now on is heard.
    ///
    /// `sender` is the unique name of the connection that owns the match's well-known sender; nil if nobody does, or if
    /// the match names none. It is told anew when the owner changes.
    case inForce(sender: String?)
    /// The bus does not take the match (its limits, its policy). The reason is a sentence for people.
    case refused(reason: String)
    /// There is no connection. The reason is that of ``BusAvailability/unavailable(reason:)``.
    case disconnected(reason: String)
}

/// Signals of a bus that are listened to, for as long as this is kept.
public final class BusSubscription: Sendable {
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    /// Ends the subscription. Called on the loop's thread, no handler runs any more; from another thread, a call that is
    /// under way may still end.
    public func cancel() { onEnd() }

    deinit { onEnd() }
}
