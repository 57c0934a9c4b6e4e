import Glibc

/// Group commit: callers that have to wait until a directory or file is on disk share the flush.
///
/// A flush that begins after a change includes the change, whichever caller made it. So a caller that comes during a
/// flush waits for the next flush, which one of the waiting callers makes for all of them: `n` concurrent callers cost
/// at most two flushes, one after the other.
///
/// Safe to call from any thread; blocks the calling thread. The flush runs without a lock of this object.
///
/// `@unchecked Sendable`: the mutable state, including that of ``Round``, is accessed only between `pthread_mutex_lock`
/// and `unlock` of `mutex`; the two pointers are set once, before the object is shared. `Synchronization.Mutex` has no
/// condition variable.
final class SharedFlush: @unchecked Sendable {
    private final class Round {
        /// Nil until the round has ended. All callers of the round get its error: the kernel reports a failed write
        /// only once (fsync(2)).
        var result: Result<Void, SystemCallError>?
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isRunning = false
    /// The round that begins when the one in progress has ended; nil if no caller waits for a round.
    private var next: Round?
    private var waitingCount = 0
    /// The number of failed flushes, and the last error.
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

    /// The number of failed flushes. Read it before the change that is to be flushed.
    var failures: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return failed.count
    }

    /// Returns when a flush that began after this call has ended.
    ///
    /// - Parameters:
    ///   - count: the ``failures`` before the change. A flush that failed since then may have included the change, and
    ///     the kernel reports the error only once. So this call throws that error even if a later flush succeeded.
    ///   - flush: called by one of the callers that share it; all callers must pass an equivalent closure.
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
            // Callers that come from here on join `own`, so none of them begins a round when this wait ends.
            wait { isRunning ? nil : () }
            next = nil
        }
        isRunning = true
        pthread_mutex_unlock(mutex)
        let result = Result { () throws(SystemCallError) in try flush() }
        pthread_mutex_lock(mutex)
        isRunning = false
        own.result = result
        // Other errors concern only the callers of this round.
        if case .failure(let error) = result, error.call == "fsync" { failed = (failed.count + 1, error) }
        pthread_cond_broadcast(condition)
        return (result, failed)
    }

    /// The number of callers that wait for the round in progress or for the next one and do not flush themselves.
    var waiting: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return waitingCount
    }

    /// Waits, with the mutex held, until `value` returns a value.
    @discardableResult
    private func wait<Value>(_ value: () -> Value?) -> Value {
        waitingCount += 1
        defer { waitingCount -= 1 }
        while true {
            if let value = value() { return value }
            pthread_cond_wait(condition, mutex)
        }
    }
}
