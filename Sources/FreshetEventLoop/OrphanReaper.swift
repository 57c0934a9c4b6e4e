import Glibc
import Synchronization

/// Reaps the orphans that the kernel gives to process 1: in a container without an init they would stay zombies for
/// ever. Children of ``ChildProcess`` are excepted.
public final class OrphanReaper: Sendable {
    private let signal: SignalDescriptor

    /// Whether this process gets the orphans.
    public static var isNeeded: Bool { getpid() == 1 }

    /// Call it before the loop has a ``ChildProcess``, with SIGCHLD blocked in all threads.
    public init(_ loop: EventLoop) throws(SystemCallError) {
        let children = loop.children
        children.beginReaping()
        // One signal may stand for several ended children: reap all each time.
        signal = try SignalDescriptor(loop, [SIGCHLD]) { _ in children.reapOrphans() }
    }
}
