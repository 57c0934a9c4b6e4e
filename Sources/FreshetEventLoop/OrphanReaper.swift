import Glibc
import Synchronization

/// Reaps the processes that the kernel gives to process 1 when their own parents have ended: in a container without an
/// init, where they would stay as zombies for ever. Those of ``ChildProcess`` are left to it.
public final class OrphanReaper: Sendable {
    private let signal: SignalDescriptor

    /// Whether this process is the one that gets the orphans.
    public static var isNeeded: Bool { getpid() == 1 }

    /// To be called before the loop has any ``ChildProcess``, with SIGCHLD blocked in all threads.
    public init(_ loop: EventLoop) throws(SystemCallError) {
        let children = loop.children
        children.beginReaping()
        // Several ends may be one signal: each time all are looked for.
        signal = try SignalDescriptor(loop, [SIGCHLD]) { _ in children.reapOrphans() }
    }
}
