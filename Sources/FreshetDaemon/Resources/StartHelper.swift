import FreshetEventLoop
import Synchronization

/// A thread of a pool that helps another thread with work of the start, once no other work waits for the pool.
final class StartHelper: Sendable {
    private let pool: WorkerPool
    private let isFree: @Sendable () -> Bool
    /// Held by the helper while it works.
    private let helping = Mutex<Void>(())

    /// - Parameter isFree: whether no other work waits for a thread of the pool.
    init(_ pool: WorkerPool, isFree: @escaping @Sendable () -> Bool) {
        self.pool = pool
        self.isFree = isFree
    }

    /// Performs pieces of work until none is left, on this thread and, when it is free, on the helper. Blocks.
    ///
    /// - Parameter work: performs a piece; returns false if none is left. Two threads call it at the same time.
    func perform(_ work: @escaping @Sendable () -> Bool) {
        var hasHelper = false
        while work() {
            guard !hasHelper, isFree() else { continue }
            hasHelper = true
            pool.perform("cache") { [self] in helping.withLock { _ in while work() {} } }
        }
        // A helper that begins later finds no work.
        if hasHelper { helping.withLock { _ in } }
    }
}
