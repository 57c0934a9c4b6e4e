public import FreshetEventLoop
public import FreshetSignals

/// Which people are at this machine, and when somebody arrives: in a line, for any program.
///
/// ```swift
/// for await fact in Sessions.changes { print(fact) }       // session 3 of alice active, unlocked
/// ```
///
/// It is a description, and costs nothing. logind is listened to while somebody iterates `changes` or is subscribed to
/// `foreground`, once for all who do (``SessionMonitor``). See <doc:Facts> for what all of these have in common.
///
/// **What is missing.** Without a bus or without logind there are no sessions; ``SessionFact/logind`` says what is
/// missing, and logind is heard as soon as it is there.
public struct Sessions: Sendable {
    /// Whose sessions count.
    public let scope: SessionScope
    private let place: SourceHost

    /// - Parameters:
    ///   - scope: whose sessions count; by default every local one.
    ///   - loop: where logind is listened to; nil: on the library's own thread.
    public init(of scope: SessionScope = .local, on loop: EventLoop? = nil) {
        self.init(of: scope, in: SourceHost(loop))
    }

    init(of scope: SessionScope, in place: SourceHost) {
        self.scope = scope
        self.place = place
    }

    /// The present fact first, then each change of it; a slow reader gets the newest.
    public var changes: some AsyncSequence<SessionFact, Never> & Sendable {
        place.facts { [scope] sources in
            let monitor = sources.sessions(of: scope)
            return (monitor.current, monitor)
        } otherwise: { reason in
            SessionFact(logind: .unavailable(reason: reason))
        }
    }

    /// A session became active, or was unlocked: `foreground`.
    public var foreground: Signal {
        place.signal { [scope] sources in
            let monitor = sources.sessions(of: scope)
            return (monitor.foreground, monitor)
        }
    }

    /// `changes` of every local session, on the library's own thread.
    public static var changes: some AsyncSequence<SessionFact, Never> & Sendable { Sessions().changes }

    /// `foreground` of every local session, on the library's own thread.
    public static var foreground: Signal { Sessions().foreground }
}
