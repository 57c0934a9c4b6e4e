import Glibc
import Synchronization

/// Which children are awaited, so that nobody else reaps or ends them.
final class ChildRegistry: Sendable {
    private struct State {
        var isReaping = false
        var own: Set<Int32> = []
        /// How many are being started: their numbers are not known yet.
        var starting = 0
        var lost: (@Sendable () -> Void)?
    }
    private let state = Mutex(State())

    /// From now on children that nobody awaits are reaped.
    func beginReaping() { state.withLock { $0.isReaping = true } }

    /// - Parameter action: called when a supervisor was killed, so that the processes that it looked after are this
    ///   process's now; and again when those that were being started meanwhile are known.
    func whenSupervisorIsLost(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.lost = action } }

    /// Starts a child. Others can start meanwhile: the program may be on a file system that does not answer.
    func note(_ spawn: () throws(SystemCallError) -> Int32) throws(SystemCallError) -> Int32 {
        state.withLock { $0.starting += 1 }
        defer {
            // One that ended before it was known.
            if state.withLock({ state in
                state.starting -= 1
                return state.isReaping && state.starting == 0
            }) {
                reapOrphans()
            }
        }
        let identifier = try spawn()
        state.withLock { _ = $0.own.insert(identifier) }
        return identifier
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

    /// A supervisor was killed.
    func supervisorIsLost() { state.withLock { $0.lost }?() }

    /// Which of these are nobody's; nil: that is not known while a child is being started.
    func strays(among children: Set<Int32>) -> Set<Int32>? {
        state.withLock { $0.starting == 0 ? children.subtracting($0.own) : nil }
    }

    /// Reaps those that have ended and are nobody's.
    func reapOrphans() {
        while true {
            var info = siginfo_t()
            // Only looked at, since it may be awaited: the kernel shows the same one until it is reaped.
            guard waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo == SIGCHLD else { return }
            let identifier = info._sifields._sigchld.si_pid
            // The one who awaits it will reap it, and come back here for those behind it. One that is being started may be
            // this one, and comes back too.
            guard let strays = strays(among: [identifier]), !strays.isEmpty else { return }
            waitpid(identifier, nil, WNOHANG)
        }
    }
}
