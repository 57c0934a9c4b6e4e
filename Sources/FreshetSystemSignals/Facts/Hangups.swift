public import FreshetEventLoop
public import FreshetSignals

/// SIGHUP, told apart by who sent it: in a line, for any program that blocks it.
///
/// ```swift
/// SignalDescriptor.block([SIGHUP])                         // first of all in `main`, before there are other threads
/// for await _ in Hangups.reloadRequested { reload() }
/// ```
///
/// It is a description, and costs nothing. The signal is listened to while somebody iterates `changes` or is
/// subscribed, once for all who do (``HangupSource``). A process has one queue of signals: use one loop for all of them.
/// See <doc:Facts> for what all of these have in common.
///
/// **What is missing.** If SIGHUP is not blocked it ends the program, as ever; ``HangupFact/obstacle`` says so.
public struct Hangups: Sendable {
    private let place: SourceHost

    /// - Parameter loop: where the signal is listened to; nil: on the library's own thread.
    public init(on loop: EventLoop? = nil) { self.init(in: SourceHost(loop)) }

    init(in place: SourceHost) { self.place = place }

    /// The present fact first, then each change of it; a slow reader gets the newest.
    public var changes: some AsyncSequence<HangupFact, Never> & Sendable {
        place.facts { sources in
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

    /// A process asked for a reload: `reload`.
    public var reloadRequested: Signal { signal { $0.reloadRequested } }

    /// The controlling terminal is gone, and the program is to end: `terminal-closed`.
    public var terminalClosed: Signal { signal { $0.terminalClosed } }

    private func signal(_ which: @escaping @Sendable (HangupSource) -> Signal) -> Signal {
        place.signal { sources in
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
