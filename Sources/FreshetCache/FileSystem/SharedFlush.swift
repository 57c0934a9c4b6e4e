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

    /// Returns when a flush that began after this call has ended.
    ///
    /// - Parameter flush: called by one of those who share it; all of them have to mean the same by it.
    func perform(_ flush: () throws(SystemCallError) -> Void) throws(SystemCallError) {
        pthread_mutex_lock(mutex)
        if let joined = next {
            let result = wait { joined.result }
            pthread_mutex_unlock(mutex)
            return try result.get()
        }
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
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
        try result.get()
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
