public import FreshetEventLoop
import FreshetSignals
import Glibc

/// Whether a bus can be used.
public enum BusAvailability: Hashable, Sendable, CustomStringConvertible {
    case connecting
    case connected
    /// The reason is a sentence for people. If the bus appears or returns, it is connected.
    case unavailable(reason: String)

    public var description: String {
        switch self {
        case .connecting: "connecting"
        case .connected: "connected"
        case .unavailable(let reason): reason
        }
    }
}

/// A connection to a message bus (D-Bus) on an event loop, through sd-bus: it receives signals and calls methods.
///
/// ```swift
/// let bus = BusConnection(loop, .system)
/// let match = try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded")
/// let subscription = bus.subscribe(match) { message in … }
/// ```
///
/// **Reconnection.** A missing bus is not an error. If the bus's socket does not exist, or if no process listens on it,
/// the connection waits for it with inotify(7), without wake-ups. A lost connection is made again, and its
/// subscriptions are restored; `BusReconnection` has the pauses. Signals that are sent in between are lost. A
/// subscription reports when it is active again (``BusSubscriptionState``): read the current state then.
///
/// **Senders.** Any peer may send a signal to a connection directly, whatever the connection has subscribed to. Signals
/// are therefore compared with the matches here, too. A match with a well-known sender only receives signals of the
/// connection that owns that name at the time; changes of the owner are followed.
///
/// **Bounds.** At most `BusLink.messagesPerIteration` messages are handled in one iteration of the loop; the rest wait
/// in the socket. A message is released when its handlers have returned. The connection does not poll.
///
/// **Threading.** All methods may be called from any thread. Handlers run on the loop's thread, and must not block. A
/// call on the loop's thread takes effect immediately, any other call in the loop's next iteration.
public final class BusConnection: Sendable {
    /// The kind of a bus.
    public enum Bus: Hashable, Sendable {
        /// `DBUS_SYSTEM_BUS_ADDRESS`, or the default below /run.
        case system
        /// `DBUS_SESSION_BUS_ADDRESS`, or `bus` in `XDG_RUNTIME_DIR`.
        case session
    }

    let loop: EventLoop
    private let link: BusLink
    private let current: CurrentValue<BusAvailability>

    /// Starts to connect. It always succeeds: see ``availability``.
    ///
    /// - Parameters:
    ///   - loop: The loop of the connection.
    ///   - bus: The bus.
    ///   - address: The address of the bus (D-Bus specification, "Server Addresses"); nil: the one from the
    ///     environment.
    public init(_ loop: EventLoop, _ bus: Bus = .system, address: String? = nil) {
        self.loop = loop
        let found = address ?? BusAddress.of(bus) { name in getenv(name).map { String(cString: $0) } }
        let current = CurrentValue(BusAvailability.connecting)
        self.current = current
        link = BusLink(loop, address: found) { current.value = $0 }
        // A weak reference: a loop that never runs must not keep its objects alive.
        loop.perform(named: "D-Bus") { [weak link] in link?.start() }
    }

    deinit {
        loop.perform(named: "D-Bus") { [link] in link.end() }
    }

    /// Whether the bus can be used now.
    public var availability: BusAvailability { current.value }

    /// The current availability, then each change; a slow reader gets the newest.
    public var availabilities: some AsyncSequence<BusAvailability, Never> & Sendable { current }

    /// Subscribes to the signals of a match.
    ///
    /// - Parameters:
    ///   - match: The signals to receive.
    ///   - onState: Called with the state of the subscription: immediately, and at each change.
    ///   - onOtherSender: Called for each signal that agrees with the match except for its sender. Such a signal is
    ///     ignored.
    ///   - handler: Gets each signal, in the order in which they were sent.
    /// - Returns: The subscription, which ends when it is cancelled or released.
    public func subscribe(
        _ match: BusMatch, onState: @escaping @Sendable (BusSubscriptionState) -> Void = { _ in },
        onOtherSender: @escaping @Sendable () -> Void = {}, _ handler: @escaping @Sendable (BusMessage) -> Void
    ) -> BusSubscription {
        let subscriber = BusLink.Subscriber(onState: onState, onOtherSender: onOtherSender, handler: handler)
        onLoop { $0.subscribe(subscriber, to: match) }
        return BusSubscription { [weak self] in self?.onLoop { $0.unsubscribe(subscriber, from: match) } }
    }

    /// Calls a method of an object.
    ///
    /// - Parameters:
    ///   - member: The method.
    ///   - interface: The interface of the method.
    ///   - path: The object.
    ///   - destination: The bus name of the object's service. A service that does not run is not started.
    ///   - arguments: Values; an array has at least one element.
    ///   - timeout: How long to wait for the reply.
    ///   - reply: Gets the reply or an error, on the loop's thread, once, unless this connection is released before.
    public func call(
        _ member: String, of interface: String, at path: String, on destination: String, _ arguments: [BusValue] = [],
        timeout: Duration = .seconds(25), reply: @escaping @Sendable (Result<[BusValue], BusError>) -> Void
    ) {
        let request = BusLink.Request(
            destination: destination, path: path, interface: interface, member: member, arguments: arguments,
            timeout: timeout)
        onLoop { $0.call(request, reply) }
    }

    /// Reads a property of an object (org.freedesktop.DBus.Properties).
    ///
    /// - Parameters:
    ///   - property: The name of the property.
    ///   - interface: The interface of the property.
    ///   - path: The object.
    ///   - destination: The bus name of the object's service.
    ///   - reply: Gets the value, like the `reply` of ``call(_:of:at:on:_:timeout:reply:)``.
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

    /// The unique name of this connection, for tests; nil without a bus. Call it on the loop's thread.
    var uniqueName: String? { link.uniqueName }

    private func onLoop(_ body: @escaping @Sendable (BusLink) -> Void) {
        if loop.isCurrent {
            body(link)
        } else {
            loop.perform(named: "D-Bus") { [link] in body(link) }
        }
    }
}

/// The state of a subscription.
public enum BusSubscriptionState: Hashable, Sendable {
    /// The bus has not been reached yet, or has not confirmed the match yet.
    case connecting
    /// The bus has confirmed the match: signals are received from now on.
    ///
    /// `sender` is the unique name of the connection that owns the match's well-known sender. It is nil if the name has
    /// no owner, or if the match has no well-known sender. A change of the owner is reported as a new state.
    case active(sender: String?)
    /// The bus refuses the match (its limits, its policy). The reason is a sentence for people.
    case refused(reason: String)
    /// There is no connection. The reason is that of ``BusAvailability/unavailable(reason:)``.
    case disconnected(reason: String)
}

/// A subscription to signals of a bus; it ends when this object is released.
public final class BusSubscription: Sendable {
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    /// Ends the subscription. If it is called on the loop's thread, the handler does not run again. On another thread,
    /// a call in progress may still end.
    public func cancel() { onEnd() }

    deinit { onEnd() }
}
