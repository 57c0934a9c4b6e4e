public import FreshetEventLoop
public import FreshetSignals

/// Whether the machine is awake, and when it woke up: in a line, for any program.
///
/// ```swift
/// for await _ in Sleep.resumed { connections.dropIdle() }
/// ```
///
/// It is a description, and costs nothing. Clocks and logind are listened to while somebody iterates `changes` or is
/// subscribed to a signal, once for all who do (``SleepMonitor``). See <doc:Facts> for what all of these have in common.
///
/// **What is missing.** Without a bus or without logind the clocks still tell of a wake; ``SleepFact/logind`` says what
/// is missing, and logind is heard as soon as it is there.
public struct Sleep: Sendable {
    private let place: SourceHost

    /// - Parameter loop: where clocks and logind are listened to; nil: on the library's own thread.
    public init(on loop: EventLoop? = nil) { self.init(in: SourceHost(loop)) }

    init(in place: SourceHost) { self.place = place }

    /// The present fact first, then each change of it; a slow reader gets the newest.
    public var changes: some AsyncSequence<SleepFact, Never> & Sendable {
        place.facts { sources in
            let monitor = sources.sleep()
            return (monitor.current, monitor)
        } otherwise: { reason in
            SleepFact(logind: .unavailable(reason: reason))
        }
    }

    /// The machine woke up: `resume`, once for each wake.
    public var resumed: Signal {
        place.signal { sources in
            let monitor = sources.sleep()
            return (monitor.resumed, monitor)
        }
    }

    /// The wall clock was set by a second or more, and the machine did not sleep: `clock-stepped`.
    public var clockStepped: Signal {
        place.signal { sources in
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
