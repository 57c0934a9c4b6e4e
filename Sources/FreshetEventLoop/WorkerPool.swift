import CLinux
import Glibc
import Synchronization

/// A few threads for work that blocks or takes long: file system, digests, the index, a resolver.
///
/// Threads start when there is work and no idle one, and end after five seconds without work: an idle program has none.
/// Work runs in the order in which it was given.
public final class WorkerPool: Sendable {
    /// How long a thread waits for more work before it ends: long enough to serve a burst with the same threads.
    static let idleTime = 5

    private let queue: WorkQueue

    /// - Parameter threads: how many pieces of work run at once at most.
    public init(threads: Int = 4) {
        queue = WorkQueue(limit: max(1, threads))
    }

    /// Runs blocking work on a worker and suspends the caller until it has ended.
    ///
    /// Work cannot be interrupted: a cancelled caller still waits for it. Work that was not begun when the caller was
    /// cancelled runs all the same; ask `Task.isCancelled` before you call.
    public func run<Success: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Success, Failure>, Never>) in
            queue.add {
                let result: Result<Success, Failure>
                do throws(Failure) {
                    result = .success(try work())
                } catch {
                    result = .failure(error)
                }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    /// Threads that exist now.
    public var threadCount: Int { queue.threadCount }
}

/// The pool's queue, which its threads keep alive while they run.
///
/// `@unchecked Sendable`: the mutable state is touched only between `pthread_mutex_lock` and `unlock` of `mutex`; the
/// two pointers are set once, before the object is shared. `Synchronization.Mutex` has no condition variable.
private final class WorkQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let limit: Int
    private var work: [@Sendable () -> Void] = []
    private var head = 0
    private var threads = 0
    private var idle = 0

    init(limit: Int) {
        self.limit = limit
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    var threadCount: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return threads
    }

    func add(_ item: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        work.append(item)
        let starts = idle < work.count - head && threads < limit
        if starts { threads += 1 }
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
        guard starts else { return }
        do {
            try Thread.start(named: "freshet-worker") { self.serve() }
        } catch {
            // No thread to be had (EAGAIN): another one takes the work, or, if there is none, the caller does it,
            // which is slow and right.
            pthread_mutex_lock(mutex)
            threads -= 1
            let mine = threads == 0 ? take() : nil
            pthread_mutex_unlock(mutex)
            mine?()
        }
    }

    private func serve() {
        pthread_mutex_lock(mutex)
        while true {
            if let item = take() {
                pthread_mutex_unlock(mutex)
                item()
                pthread_mutex_lock(mutex)
                continue
            }
            var deadline = timespec()
            clock_gettime(CLOCK_MONOTONIC, &deadline)
            deadline.tv_sec += WorkerPool.idleTime
            idle += 1
            let result = pthread_cond_timedwait(condition, mutex, &deadline)
            idle -= 1
            if result == ETIMEDOUT && head == work.count { break }
        }
        threads -= 1
        pthread_mutex_unlock(mutex)
    }

    /// Call with the mutex held.
    private func take() -> (@Sendable () -> Void)? {
        guard head < work.count else { return nil }
        defer {
            head += 1
            if head == work.count {
                work.removeAll(keepingCapacity: head <= 256)
                head = 0
            }
        }
        return work[head]
    }
}
