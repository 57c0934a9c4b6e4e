public import FreshetEventLoop
public import FreshetSignals

/// Signals of a message bus (D-Bus) that agree with a match.
///
/// ```swift
/// let added = try BusEvents(matching: BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded"))
/// for await _ in added.signal { … }
/// ```
///
/// It is a description, and costs nothing. The bus is connected while there is an iteration of `changes` or a
/// subscription to `signal`. All of them share one connection, also ``Sleep`` and ``Sessions``. See <doc:Facts> for the
/// properties that all sources share. To read the arguments of a signal, use ``BusConnection``.
///
/// **Availability.** If there is no bus, or if the bus refuses the match, ``BusSubscriptionState`` shows it. A bus that
/// appears or returns is connected.
public struct BusEvents: Sendable {
    /// The signals to receive.
    public let match: BusMatch
    /// The bus.
    public let bus: BusConnection.Bus
    private let host: SourceHost

    /// - Parameters:
    ///   - match: The signals to receive.
    ///   - bus: The bus.
    ///   - loop: The event loop to use; nil: the library's own thread.
    public init(matching match: BusMatch, of bus: BusConnection.Bus = .system, on loop: EventLoop? = nil) {
        self.init(matching: match, of: bus, in: SourceHost(loop))
    }

    init(matching match: BusMatch, of bus: BusConnection.Bus, in host: SourceHost) {
        self.match = match
        self.bus = bus
        self.host = host
    }

    /// The current state of the subscription, with its sender, then each change. A slow reader gets the newest.
    public var changes: some AsyncSequence<BusSubscriptionState, Never> & Sendable {
        host.facts { [match, bus] sources in
            let signals = sources.signals(of: bus)
            let followed = signals.follow(match)
            return (followed.current, [signals, followed] as [any Sendable])
        } otherwise: { reason in
            .disconnected(reason: reason)
        }
    }

    /// Fires when a signal that agrees with the match was sent. The occurrence's detail names the signal, its sender
    /// and its object.
    public var signal: Signal {
        host.signal { [match, bus] sources in
            let signals = sources.signals(of: bus)
            let followed = signals.follow(match)
            return (followed.signal, [signals, followed] as [any Sendable])
        }
    }
}
