import Glibc
import Synchronization

/// The children that a ``ChildProcess`` awaits, so that nothing else reaps or ends them.
final class ChildRegistry: Sendable {
    private struct State {
        var isReaping = false
        var own: Set<Int32> = []
        /// The number of children that are being started: their process ids are not known yet.
        var starting = 0
        var lost: (@Sendable () -> Void)?
    }
    private let state = Mutex(State())

    /// From now on, children without a ``ChildProcess`` are reaped.
    func beginReaping() { state.withLock { $0.isReaping = true } }

    /// - Parameter action: Called when a supervisor was killed, because its processes then become children of this
    ///   process. Called again when the ids of children that were being started at that time are known.
    func whenSupervisorIsLost(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.lost = action } }

    /// Starts a child and registers it. Other children can start at the same time: the program may be on a file system
    /// that does not respond.
    func register(_ spawn: () throws(SystemCallError) -> Int32) throws(SystemCallError) -> Int32 {
        state.withLock { $0.starting += 1 }
        defer {
            // Children may have ended before their ids were known.
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

    /// Unregisters a child that was reaped.
    func unregister(_ identifier: Int32) {
        let isReaping = state.withLock { state in
            state.own.remove(identifier)
            return state.isReaping
        }
        // This child may have hidden others, see `reapOrphans`.
        if isReaping { reapOrphans() }
    }

    /// Reports that a supervisor was killed.
    func supervisorIsLost() { state.withLock { $0.lost }?() }

    /// The children among these that no ``ChildProcess`` awaits; nil while a child is being started, because its id is
    /// not known.
    func strays(among children: Set<Int32>) -> Set<Int32>? {
        state.withLock { $0.starting == 0 ? children.subtracting($0.own) : nil }
    }

    /// Reaps ended children that no ``ChildProcess`` awaits.
    func reapOrphans() {
        while true {
            var info = siginfo_t()
            // WNOWAIT, since a ``ChildProcess`` may await it: the kernel returns the same child until it is reaped.
            guard waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo == SIGCHLD else { return }
            let identifier = info._sifields._sigchld.si_pid
            // If a ``ChildProcess`` awaits this child, it reaps the child and calls this method again. If a child is
            // being started, it may be this one; the end of the start calls this method again.
            guard let strays = strays(among: [identifier]), !strays.isEmpty else { return }
            waitpid(identifier, nil, WNOHANG)
        }
    }
}
