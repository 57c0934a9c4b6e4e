public import FreshetEventLoop
public import FreshetSignals

/// Whether the machine is awake, and when it resumed.
///
/// ```swift
/// for await _ in Sleep.resumed { connections.dropIdle() }
/// ```
///
/// It is a description, and costs nothing. Clocks and logind are watched while there is an iteration of `changes` or a
/// subscription to a signal, once for all of them (``SleepMonitor``). See <doc:Facts> for the properties that all
/// sources share.
///
/// **Availability.** Without a bus or without logind the clocks still show that the machine resumed.
/// ``SleepFact/logind`` shows what is missing. logind is used when it appears.
public struct Sleep: Sendable {
    private let host: SourceHost

    /// - Parameter loop: The event loop to use; nil: the library's own thread.
    public init(on loop: EventLoop? = nil) { self.init(in: SourceHost(loop)) }

    init(in host: SourceHost) { self.host = host }

    /// The current fact, then each change; a slow reader gets the newest.
    public var changes: some AsyncSequence<SleepFact, Never> & Sendable {
        host.facts { sources in
            let monitor = sources.sleep()
            return (monitor.current, monitor)
        } otherwise: { reason in
            SleepFact(logind: .unavailable(reason: reason))
        }
    }

    /// The machine resumed: `resume`, once for each sleep.
    public var resumed: Signal {
        host.signal { sources in
            let monitor = sources.sleep()
            return (monitor.resumed, monitor)
        }
    }

    /// The wall clock was set by a second or more without a sleep: `clock-stepped`.
    public var clockStepped: Signal {
        host.signal { sources in
            let monitor = sources.sleep()
            return (monitor.clockStepped, monitor)
        }
    }

    /// `changes`, on the library's own thread.
    public static var changes: some AsyncSequence<SleepFact, Never> & Sendable { Sleep().changes }

    /// `resumed`, on the library's own thread.
    public static var resumed: Signal { Sleep().resumed }

    /// `clockStepped`, on the library's own thread.
    public static var clockStepped: Signal { Sleep().clockStepped }
}
