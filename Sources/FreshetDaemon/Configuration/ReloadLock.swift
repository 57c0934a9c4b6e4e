/// The lock of reloads. The start of all pipelines, holds and prunings take the lock too, because a reload must not add
/// or remove pipelines meanwhile.
@DaemonActor
final class ReloadLock {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    nonisolated init() {}

    /// Waits until the lock is free, and takes it until ``release()``.
    func acquire() async {
        guard isTaken else {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiter in
            // The holder may have released the lock meanwhile, because the suspension lets other work run first.
            guard isTaken else {
                isTaken = true
                return waiter.resume()
            }
            waiting.append(waiter)
        }
    }

    /// Passes the lock to the caller that has waited longest, so that no later one overtakes it.
    func release() {
        guard waiting.isEmpty else { return waiting.removeFirst().resume() }
        isTaken = false
    }
}
