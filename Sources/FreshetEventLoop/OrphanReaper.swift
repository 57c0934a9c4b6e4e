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

/// Which children are awaited, so that nobody else reaps them. While there is no reaper it notes nothing.
final class ChildLedger: Sendable {
    private struct State {
        var isReaping = false
        var own: Set<Int32> = []
    }
    private let state = Mutex(State())

    func beginReaping() { state.withLock { $0.isReaping = true } }

    /// Starts a child. With a reaper about, no other can start or be judged meanwhile: one that ends at once must be
    /// known before it is found.
    func note(_ spawn: () throws(SystemCallError) -> Int32) throws(SystemCallError) -> Int32 {
        guard state.withLock({ $0.isReaping }) else { return try spawn() }
        return try state.withLock { (state) throws(SystemCallError) in
            let identifier = try spawn()
            state.own.insert(identifier)
            return identifier
        }
    }

    /// A child was reaped.
    func forget(_ identifier: Int32) {
        let isReaping = state.withLock { state in
            state.own.remove(identifier)
            return state.isReaping
        }
        // It may have hidden others, see below.
        if isReaping { reapOrphans() }
    }

    /// Reaps those that have ended and are nobody's.
    func reapOrphans() {
        while true {
            var info = siginfo_t()
            // Only looked at, since it may be awaited: the kernel shows the same one until it is reaped.
            guard waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo == SIGCHLD else { return }
            let identifier = info._sifields._sigchld.si_pid
            // The one who awaits it will reap it, and come back here for those behind it.
            guard !state.withLock({ $0.own.contains(identifier) }) else { return }
            waitpid(identifier, nil, WNOHANG)
        }
    }
}
