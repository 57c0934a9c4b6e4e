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

    /// A piece of work under way.
    public struct RunningWork: Hashable, Sendable {
        /// What it was called when it was given.
        public var name: String
        /// When a thread began with it.
        public var since: ContinuousClock.Instant
    }

    private let queue: WorkQueue

    /// - Parameter threads: how many pieces of work run at once at most.
    public init(threads: Int = 4) {
        queue = WorkQueue(limit: max(1, threads))
    }

    /// Runs blocking work on a worker and suspends the caller until it has ended.
    ///
    /// Work cannot be interrupted: a cancelled caller still waits for it. Work that was not begun when the caller was
    /// cancelled runs all the same; ask `Task.isCancelled` before you call.
    ///
    /// - Parameters:
    ///   - name: what ``oldestRunning`` calls it, for people.
    ///   - work: what may block. Its error is thrown to the caller.
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

    /// Runs blocking work on a worker, and does not wait for it.
    ///
    /// - Parameters:
    ///   - name: what ``oldestRunning`` calls it, for people.
    ///   - work: what may block. Without a thread to be had the caller may do it, or other work, itself: call this
    ///     without locks that work takes.
    package func perform(_ name: StaticString, _ work: @escaping @Sendable () -> Void) {
        queue.add(name) { _ in work() }
    }

    /// One piece of work that a thread has begun.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// Runs blocking work on a worker, and does not wait for it. The work receives the ticket for ``replace(_:)``.
    package func perform(_ name: StaticString, withTicket work: @escaping @Sendable (Ticket) -> Void) {
        queue.add(name) { work(Ticket(number: $0)) }
    }

    /// Lets the pool run one more thread for as long as this work goes on, since the work hangs. When the work ends, the
    /// pool has its old limit again. Does nothing if the work has ended. The caller bounds how many it replaces.
    package func replace(_ ticket: Ticket) { queue.replace(ticket.number) }

    /// Threads that exist now.
    public var threadCount: Int { queue.threadCount }

    /// The work under way that has taken longest so far; nil if there is none. Work that hangs, as on a slow disk, is
    /// found by it: asking costs a lock, and nothing wakes up for it.
    public var oldestRunning: RunningWork? { queue.oldestRunning }
}

/// The pool's queue, which its threads keep alive while they run.
///
/// `@unchecked Sendable`: the mutable state is touched only between `pthread_mutex_lock` and `unlock` of `mutex`; the
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
    /// What the threads do now: as many as there are threads at most, and the oldest first.
    private var running: [Running] = []
    private var lastTicket: UInt64 = 0
    /// Work under way that hangs: each has its thread beside the limit.
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
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
        if starts { startThread() }
    }

    func replace(_ ticket: UInt64) {
        pthread_mutex_lock(mutex)
        if running.contains(where: { $0.ticket == ticket }) { replaced.insert(ticket) }
        let starts = takesThread()
        pthread_mutex_unlock(mutex)
        if starts { startThread() }
    }

    /// Counts one more thread if the work that waits needs one and the limit allows it. Call with the mutex held.
    private func takesThread() -> Bool {
        guard idle < work.count - head, threads < limit + replaced.count else { return false }
        threads += 1
        return true
    }

    private func startThread() {
        do {
            try Thread.start(named: "freshet-worker") { self.serve() }
        } catch {
            // No thread to be had (EAGAIN): another one takes the work, or, if there is none, the caller does it,
            // which is slow and right.
            pthread_mutex_lock(mutex)
            threads -= 1
            if threads == 0 { runNext() }
            pthread_mutex_unlock(mutex)
        }
    }

    private func serve() {
        pthread_mutex_lock(mutex)
        while true {
            // A replaced thread that comes back takes its place again if the limit has room for it.
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

    /// Takes a piece of work and runs it; false if there is none. Call with the mutex held: it is released meanwhile.
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

    /// Call with the mutex held.
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
