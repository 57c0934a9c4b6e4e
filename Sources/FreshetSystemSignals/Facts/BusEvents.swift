public import FreshetEventLoop
public import FreshetSignals

/// The signals of a message bus (D-Bus) that agree with a match: in a line, for any program.
///
/// ```swift
/// let added = try BusEvents(matching: BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded"))
/// for await _ in added.signal { … }
/// ```
///
/// It is a description, and costs nothing. The bus is listened to while somebody iterates `changes` or is subscribed
/// to `signal`; there is one connection for all who do, ``Sleep`` and ``Sessions`` included. See <doc:Facts> for what
/// all of these have in common. Who wants the arguments of a signal uses ``BusConnection``.
///
/// **What is missing.** Without a bus, or if it refuses the match, ``BusSubscriptionState`` says so; a bus that comes, or comes
/// back, is connected to.
public struct BusEvents: Sendable {
    /// Which signals are wanted.
    public let match: BusMatch
    /// On which bus.
    public let bus: BusConnection.Bus
    private let place: SourceHost

    /// - Parameters:
    ///   - match: which signals are wanted.
    ///   - bus: on which bus.
    ///   - loop: where the bus is listened to; nil: on the library's own thread.
    public init(matching match: BusMatch, of bus: BusConnection.Bus = .system, on loop: EventLoop? = nil) {
        self.init(matching: match, of: bus, in: SourceHost(loop))
    }

    init(matching match: BusMatch, of bus: BusConnection.Bus, in place: SourceHost) {
        self.match = match
        self.bus = bus
        self.place = place
    }

    /// How the match stands at present, then each change of that: whether it is heard, and who its sender is. A slow
    /// reader gets the newest.
    public var changes: some AsyncSequence<BusSubscriptionState, Never> & Sendable {
        place.facts { [match, bus] sources in
            let signals = sources.signals(of: bus)
            let followed = signals.follow(match)
            return (followed.current, [signals, followed] as [any Sendable])
        } otherwise: { reason in
            .disconnected(reason: reason)
        }
    }

    /// A signal that agrees with the match was sent. The occurrence's detail names it, its sender and its object.
    public var signal: Signal {
        place.signal { [match, bus] sources in
            let signals = sources.signals(of: bus)
            let followed = signals.follow(match)
            return (followed.signal, [signals, followed] as [any Sendable])
        }
    }
}
