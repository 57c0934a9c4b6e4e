import CLinux
import Glibc
import Synchronization

/// A few threads for work that blocks or takes long: file system, digests, the index, a resolver.
///
/// A thread starts when there is work and no idle thread, and ends after five seconds without work: an idle program has
/// none. Work runs in the order in which it was added.
public final class WorkerPool: Sendable {
    /// How long an idle thread waits for work before it ends: long enough to use the same threads for a burst of work.
    static let idleTime = 5

    /// Work in progress.
    public struct RunningWork: Hashable, Sendable {
        /// The name of the work.
        public var name: String
        /// When a thread started the work.
        public var since: ContinuousClock.Instant
    }

    private let queue: WorkQueue

    /// - Parameter threads: The maximum number of threads.
    public init(threads: Int = 4) {
        queue = WorkQueue(limit: max(1, threads))
    }

    /// Runs blocking work on a worker and suspends the caller until the work has ended.
    ///
    /// Work cannot be interrupted: a cancelled caller still waits for it. Work that had not started when the caller was
    /// cancelled still runs; check `Task.isCancelled` before the call.
    ///
    /// - Parameters:
    ///   - name: The name of the work in ``oldestRunning``, for people.
    ///   - work: Work that may block. Its error is thrown to the caller.
    public func run<Success: Sendable, Failure: Error>(
        _ name: StaticString = "file access", _ work: @escaping @Sendable () throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Success, Failure>, Never>) in
            queue.add(name) { _ in
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

    /// Runs blocking work on a worker without waiting for it.
    ///
    /// - Parameters:
    ///   - name: The name of the work in ``oldestRunning``, for people.
    ///   - work: Work that may block. If no thread can be started, the caller may run it, or other work, itself: do not
    ///     hold locks that any work takes.
    package func perform(_ name: StaticString, _ work: @escaping @Sendable () -> Void) {
        queue.add(name) { _ in work() }
    }

    /// Identifies work that a thread has started.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// Runs blocking work on a worker without waiting for it. The work receives the ticket for ``replace(_:)``.
    package func perform(_ name: StaticString, withTicket work: @escaping @Sendable (Ticket) -> Void) {
        queue.add(name) { work(Ticket(number: $0)) }
    }

    /// Lets the pool run one more thread while this work runs, because the work hangs. When the work ends, the pool
    /// returns to its limit. It has no effect if the work has ended. The caller has to bound how many threads it
    /// replaces.
    package func replace(_ ticket: Ticket) { queue.replace(ticket.number) }

    /// The number of threads.
    public var threadCount: Int { queue.threadCount }

    /// The work in progress that has run longest; nil if there is none. Use it to find work that hangs, for example on
    /// a slow disk. It only takes a lock and wakes nothing.
    public var oldestRunning: RunningWork? { queue.oldestRunning }
}

/// The pool's queue, which its threads keep alive while they run.
///
/// `@unchecked Sendable`: the mutable state is accessed only between `pthread_mutex_lock` and `unlock` of `mutex`; the
/// two pointers are set once, before the object is shared. `Synchronization.Mutex` has no condition variable.
private final class WorkQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private struct Item {
        var name: StaticString
        var body: @Sendable (_ ticket: UInt64) -> Void
    }

    private struct Running {
        var ticket: UInt64
        var name: StaticString
        var since: ContinuousClock.Instant
    }

    private let limit: Int
    private var work: [Item] = []
    private var head = 0
    /// The work of the threads, the oldest first: at most one item for each thread.
    private var running: [Running] = []
    private var lastTicket: UInt64 = 0
    /// Work in progress that hangs: each has an extra thread beyond the limit.
    private var replaced: Set<UInt64> = []
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

    var oldestRunning: WorkerPool.RunningWork? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return running.first.map { WorkerPool.RunningWork(name: $0.name.description, since: $0.since) }
    }

    func add(_ name: StaticString, _ body: @escaping @Sendable (_ ticket: UInt64) -> Void) {
        pthread_mutex_lock(mutex)
        work.append(Item(name: name, body: body))
        let starts = takesThread()
        pthread_mutex_unlock(mutex)
        // Without the mutex: otherwise the thread would wake up and wait for it.
        pthread_cond_signal(condition)
        if starts { startThread() }
    }

    func replace(_ ticket: UInt64) {
        pthread_mutex_lock(mutex)
        if running.contains(where: { $0.ticket == ticket }) { replaced.insert(ticket) }
        let starts = takesThread()
        pthread_mutex_unlock(mutex)
        if starts { startThread() }
    }

    /// Counts one more thread if waiting work needs one and the limit allows it. Call it with the mutex held.
    private func takesThread() -> Bool {
        guard idle < work.count - head, threads < limit + replaced.count else { return false }
        threads += 1
        return true
    }

    private func startThread() {
        do {
            try Thread.start(named: "freshet-worker") { self.serve() }
        } catch {
            // No thread can be started (EAGAIN): another thread takes the work. If there is none, the caller runs it,
            // which is slow but correct.
            pthread_mutex_lock(mutex)
            threads -= 1
            if threads == 0 { runNext() }
            pthread_mutex_unlock(mutex)
        }
    }

    private func serve() {
        pthread_mutex_lock(mutex)
        while true {
            // After hanging work has ended, there may be more threads than the limit allows.
            if threads > limit + replaced.count { break }
            if runNext() { continue }
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

    /// Takes one item of work and runs it; returns false if there is none. Call it with the mutex held; the mutex is
    /// released while the work runs.
    @discardableResult
    private func runNext() -> Bool {
        guard let item = take() else { return false }
        lastTicket += 1
        let ticket = lastTicket
        running.append(Running(ticket: ticket, name: item.name, since: .now))
        pthread_mutex_unlock(mutex)
        item.body(ticket)
        pthread_mutex_lock(mutex)
        running.removeAll { $0.ticket == ticket }
        replaced.remove(ticket)
        return true
    }

    /// Call it with the mutex held.
    private func take() -> Item? {
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
