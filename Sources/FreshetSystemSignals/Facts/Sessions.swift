public import FreshetEventLoop
public import FreshetSignals

/// The login sessions at this machine, and when a user arrives.
///
/// ```swift
/// for await fact in Sessions.changes { print(fact) }       // session 3 of alice active, unlocked
/// ```
///
/// It is a description, and costs nothing. logind's signals are received while there is an iteration of `changes` or a
/// subscription to `foreground`, once for all of them (``SessionMonitor``). See <doc:Facts> for the properties that all
/// sources share.
///
/// **Availability.** Without a bus or without logind there are no sessions. ``SessionFact/logind`` shows what is
/// missing. logind is used when it appears.
public struct Sessions: Sendable {
    /// The users whose sessions count.
    public let scope: SessionScope
    private let host: SourceHost

    /// - Parameters:
    ///   - scope: The users whose sessions count; by default every local session counts.
    ///   - loop: The event loop to use; nil: the library's own thread.
    public init(of scope: SessionScope = .local, on loop: EventLoop? = nil) {
        self.init(of: scope, in: SourceHost(loop))
    }

    init(of scope: SessionScope, in host: SourceHost) {
        self.scope = scope
        self.host = host
    }

    /// The current fact, then each change; a slow reader gets the newest.
    public var changes: some AsyncSequence<SessionFact, Never> & Sendable {
        host.facts { [scope] sources in
            let monitor = sources.sessions(of: scope)
            return (monitor.current, monitor)
        } otherwise: { reason in
            SessionFact(logind: .unavailable(reason: reason))
        }
    }

    /// A session became active, or was unlocked: `foreground`.
    public var foreground: Signal {
        host.signal { [scope] sources in
            let monitor = sources.sessions(of: scope)
            return (monitor.foreground, monitor)
        }
    }

    /// `changes` of every local session, on the library's own thread.
    public static var changes: some AsyncSequence<SessionFact, Never> & Sendable { Sessions().changes }

    /// `foreground` of every local session, on the library's own thread.
    public static var foreground: Signal { Sessions().foreground }
}
