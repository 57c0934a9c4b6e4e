public import FreshetEventLoop
public import FreshetSignals

/// SIGHUP, by its sender: for any program that blocks it.
///
/// ```swift
/// SignalDescriptor.block([SIGHUP])                         // first in `main`, before there are other threads
/// for await _ in Hangups.reloadRequested { reload() }
/// ```
///
/// It is a description, and costs nothing. SIGHUP is received while there is an iteration of `changes` or a
/// subscription, once for all of them (``HangupSource``). A process has one queue of signals: use one loop for all of
/// them. See <doc:Facts> for the properties that all sources share.
///
/// **Availability.** If SIGHUP is not blocked, it ends the program as usual; ``HangupFact/obstacle`` shows it.
public struct Hangups: Sendable {
    private let host: SourceHost

    /// - Parameter loop: The event loop to use; nil: the library's own thread.
    public init(on loop: EventLoop? = nil) { self.init(in: SourceHost(loop)) }

    init(in host: SourceHost) { self.host = host }

    /// The current fact, then each change; a slow reader gets the newest.
    public var changes: some AsyncSequence<HangupFact, Never> & Sendable {
        host.facts { sources in
            do throws(SystemCallError) {
                let source = try sources.hangups()
                return (source.current, source)
            } catch {
                return (CurrentValue(HangupFact(obstacle: SourceHost.explain(error))), ())
            }
        } otherwise: { reason in
            HangupFact(obstacle: reason)
        }
    }

    /// A process requested a reload: `reload`.
    public var reloadRequested: Signal { signal { $0.reloadRequested } }

    /// The controlling terminal was closed, and the program should end: `terminal-closed`.
    public var terminalClosed: Signal { signal { $0.terminalClosed } }

    private func signal(_ which: @escaping @Sendable (HangupSource) -> Signal) -> Signal {
        host.signal { sources in
            guard let source = try? sources.hangups() else { return (.never, ()) }
            return (which(source), source)
        }
    }

    /// `changes`, on the library's own thread.
    public static var changes: some AsyncSequence<HangupFact, Never> & Sendable { Hangups().changes }

    /// `reloadRequested`, on the library's own thread.
    public static var reloadRequested: Signal { Hangups().reloadRequested }

    /// `terminalClosed`, on the library's own thread.
    public static var terminalClosed: Signal { Hangups().terminalClosed }
}
