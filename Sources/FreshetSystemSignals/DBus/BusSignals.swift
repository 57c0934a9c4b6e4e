import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signals of a bus as `Signal` values, one for each match.
///
/// ```swift
/// let signals = BusSignals(BusConnection(loop, .system))
/// let added = signals.follow(try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded"))
/// for await _ in added.signal { … }
/// ```
///
/// The body of a message is only read as far as the match requires, and messages of a flood are only counted. Signals
/// that are sent while there is no bus are lost (``BusConnection``).
///
/// **Threading.** All methods may be called from any thread.
public final class BusSignals: Sendable {
    /// The name of the signals.
    public static let signalName = "dbus"

    private let bus: BusConnection
    private let state = Mutex(State())

    private struct State {
        var followed: [BusMatch: WeakSignal] = [:]
        var lastSerial: UInt64 = 0
    }

    private struct WeakSignal {
        weak var signal: BusSignal?
        /// Distinguishes it from an earlier signal of the same match.
        let serial: UInt64
    }

    /// - Parameter bus: Kept alive by this object and its signals.
    public init(_ bus: BusConnection) { self.bus = bus }

    /// Whether the bus can be used now.
    public var availability: BusAvailability { bus.availability }

    /// Follows a match while the returned object is alive. A match that is already followed returns the same object.
    public func follow(_ match: BusMatch) -> BusSignal {
        let (signal, isNew) = state.withLock { state in
            if let signal = state.followed[match]?.signal { return (signal, false) }
            state.lastSerial += 1
            let serial = state.lastSerial
            let signal = BusSignal(match, bus) { [weak self] in self?.forget(match, serial) }
            state.followed[match] = WeakSignal(signal: signal, serial: serial)
            return (signal, true)
        }
        // Not under the lock: on the loop's thread it reports its state immediately.
        if isNew { signal.begin() }
        return signal
    }

    private func forget(_ match: BusMatch, _ serial: UInt64) {
        state.withLock { if $0.followed[match]?.serial == serial { $0.followed[match] = nil } }
    }

    /// The number of followed matches, for tests.
    var count: Int { state.withLock { $0.followed.count } }
}

/// One match that ``BusSignals`` follows while this object is alive.
public final class BusSignal: Sendable {
    public let match: BusMatch
    /// Fires at each message that agrees with the match. The detail names signal, sender and object.
    public var signal: Signal { source.signal }

    private let bus: BusConnection
    private let source = SignalSource(BusSignals.signalName)
    let current = CurrentValue(BusSubscriptionState.connecting)
    private let otherSenders = Counter()
    private let subscription = Mutex<BusSubscription?>(nil)
    private let onEnd: @Sendable () -> Void

    init(_ match: BusMatch, _ bus: BusConnection, onEnd: @escaping @Sendable () -> Void) {
        self.match = match
        self.bus = bus
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    func begin() {
        let subscription = bus.subscribe(match) { [current] subscriptionState in
            current.value = subscriptionState
        } onOtherSender: { [otherSenders] in
            otherSenders.count()
        } _: { [source] message in
            source.fire("\(message.interface).\(message.member) from \(message.sender) at \(message.path)")
        }
        self.subscription.withLock { $0 = subscription }
    }

    /// The number of messages that were ignored because only their sender did not agree with the match.
    public var ignoredMessages: UInt64 { otherSenders.value }

    /// Fires the signal as if a message had arrived.
    package func fire(_ detail: String) { source.fire(detail) }

    /// The state of the subscription.
    public var subscriptionState: BusSubscriptionState { current.value }

    /// The current state of the subscription, then each change; a slow reader gets the newest.
    public var subscriptionStates: some AsyncSequence<BusSubscriptionState, Never> & Sendable { current }
}

/// A counter for any thread.
private final class Counter: Sendable {
    private let counted = Atomic<UInt64>(0)

    var value: UInt64 { counted.load(ordering: .relaxed) }
    func count() { counted.add(1, ordering: .relaxed) }
}
