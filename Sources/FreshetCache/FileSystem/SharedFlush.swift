import Glibc

/// Group commit of one directory: those who have to wait until it is on disk wait together.
///
/// A flush that begins after a change has the change in it, whoever made it. So who comes while one is under way waits
/// for the next, which one of those waiting does for all of them: `n` at once cost at most two, one after the other.
///
/// Safe to call from any thread; blocks the calling one. The flush runs without a lock of this object.
///
/// `@unchecked Sendable`: the mutable state, that of ``Round`` too, is touched only between `pthread_mutex_lock` and
/// `unlock` of `mutex`; the two pointers are set once, before the object is shared. `Synchronization.Mutex` has no
/// condition variable.
final class SharedFlush: @unchecked Sendable {
    private final class Round {
        /// Nil until it has ended. An error is everybody's: the kernel tells a failed write once only (fsync(2)).
        var result: Result<Void, SystemCallError>?
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isRunning = false
    /// The round that begins when the one under way has ended; nil: nobody waits for one.
    private var next: Round?
    private var sleepers = 0
    /// How many flushes the disk has failed, and the last one's error.
    private var failed: (count: Int, last: SystemCallError?) = (0, nil)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// How many flushes the disk has failed: to be asked before the change that is to be flushed.
    var failures: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return failed.count
    }

    /// Returns when a flush that began after this call has ended.
    ///
    /// - Parameters:
    ///   - count: the ``failures`` before the change. One that failed since may have had the change in it, and the kernel
    ///     tells that no second time: who made the change is told here, however the later flush ended.
    ///   - flush: called by one of those who share it; all of them have to mean the same by it.
    func perform(
        since count: Int? = nil, _ flush: () throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let (result, failed) = performRound(flush)
        try result.get()
        if let count, failed.count > count, let error = failed.last { throw error }
    }

    private func performRound(
        _ flush: () throws(SystemCallError) -> Void
    ) -> (result: Result<Void, SystemCallError>, failed: (count: Int, last: SystemCallError?)) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if let joined = next { return (wait { joined.result }, failed) }
        let own = Round()
        if isRunning {
            next = own
            // Who comes from here on joins `own`, so that nobody else begins when this wait is over.
            wait { isRunning ? nil : () }
            next = nil
        }
        isRunning = true
        pthread_mutex_unlock(mutex)
        let result = Result { () throws(SystemCallError) in try flush() }
        pthread_mutex_lock(mutex)
        isRunning = false
        own.result = result
        // What else may fail concerns none but those who asked.
        if case .failure(let error) = result, error.call == "fsync" { failed = (failed.count + 1, error) }
        pthread_cond_broadcast(condition)
        return (result, failed)
    }

    /// How many wait for the round under way, or for the next one, and do not flush themselves now.
    var waiting: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return sleepers
    }

    /// Waits, with the mutex held, until there is something.
    @discardableResult
    private func wait<Value>(_ value: () -> Value?) -> Value {
        sleepers += 1
        defer { sleepers -= 1 }
        while true {
            if let value = value() { return value }
            pthread_cond_wait(condition, mutex)
        }
    }
}
