import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signals of a bus, each match one `Signal`.
///
/// ```swift
/// let signals = BusSignals(BusConnection(loop, .system))
/// let added = signals.follow(try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded"))
/// for await _ in added.signal { … }
/// ```
///
/// A message's body is not looked at, beyond what a match asks for: a large one costs what the bus made of it, and a
/// flood is counted. What was said while there was no bus is lost (``BusConnection``).
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
        /// Tells it from the one of the same match before it.
        let serial: UInt64
    }

    /// - Parameter bus: kept for as long as this or one of its signals is.
    public init(_ bus: BusConnection) { self.bus = bus }

    /// Whether the bus can be used at present.
    public var availability: BusAvailability { bus.availability }

    /// Follows a match for as long as what is returned is kept. Who asks for a match that is followed gets the same.
    public func follow(_ match: BusMatch) -> BusSignal {
        let (signal, isNew) = state.withLock { state in
            if let signal = state.followed[match]?.signal { return (signal, false) }
            state.lastSerial += 1
            let serial = state.lastSerial
            let signal = BusSignal(match, bus) { [weak self] in self?.forget(match, serial) }
            state.followed[match] = WeakSignal(signal: signal, serial: serial)
            return (signal, true)
        }
        // Not under the lock: on the loop's thread it tells how it stands at once.
        if isNew { signal.begin() }
        return signal
    }

    private func forget(_ match: BusMatch, _ serial: UInt64) {
        state.withLock { if $0.followed[match]?.serial == serial { $0.followed[match] = nil } }
    }

    /// How many matches are followed, for tests.
    var count: Int { state.withLock { $0.followed.count } }
}

/// One match that ``BusSignals`` follows, for as long as this is kept.
public final class BusSignal: Sendable {
    public let match: BusMatch
    /// Fires at each message that the match wants. The detail names signal, sender and object.
    public var signal: Signal { source.signal }

    private let bus: BusConnection
    private let source = SignalSource(BusSignals.signalName)
    let current = CurrentValue(BusSubscriptionState.connecting)
    private let strangers = Counter()
    private let subscription = Mutex<BusSubscription?>(nil)
    private let onEnd: @Sendable () -> Void

    init(_ match: BusMatch, _ bus: BusConnection, onEnd: @escaping @Sendable () -> Void) {
        self.match = match
        self.bus = bus
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    func begin() {
        let subscription = bus.subscribe(match) { [current] standing in
            current.value = standing
        } onStranger: { [strangers] in
            strangers.count()
        } _: { [source] message in
            source.fire("\(message.interface).\(message.member) from \(message.sender) at \(message.path)")
        }
        self.subscription.withLock { $0 = subscription }
    }

    /// How many messages were what the match wants but for their sender, and so fired nothing.
    public var ignoredMessages: UInt64 { strangers.value }

    /// Fires the signal by hand.
    package func raise(_ detail: String) { source.fire(detail) }

    /// Whether it is heard.
    public var standing: BusSubscriptionState { current.value }

    /// How it stands first, then what becomes of that; a slow reader gets the newest.
    public var standings: some AsyncSequence<BusSubscriptionState, Never> & Sendable { current }
}

/// Counts, from any thread.
private final class Counter: Sendable {
    private let counted = Atomic<UInt64>(0)

    var value: UInt64 { counted.load(ordering: .relaxed) }
    func count() { counted.add(1, ordering: .relaxed) }
}
