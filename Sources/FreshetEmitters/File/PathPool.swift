package import FreshetEventLoop
package import FreshetPipelines
import Synchronization

/// Threads for paths from the configuration, whose file system may not answer: an NFS server that is down, a disk that
/// fails.
///
/// Such a call cannot be interrupted. An access that hangs affects only its own pipeline:
/// - A pipeline has one access at a time here; its other accesses wait and use no thread.
/// - After ``Limits/abandonment`` the pool starts another thread beside the one that hangs, up to
///   ``Limits/replacements``. If the access ends after all, the pool has one thread less again.
/// - When all of these threads hang, accesses that have not begun fail, and so does each new one.
/// - A cancelled caller returns immediately. The later result of its access is discarded.
package final class PathPool: Sendable {
    package struct Limits: Sendable {
        /// The number of concurrent accesses.
        package var threads = 4
        /// The most hanging accesses whose threads are replaced.
        package var replacements = 16
        /// The time after which an access counts as waiting for the file system.
        package var notice: Duration = .seconds(1)
        /// The time after which an access that has begun counts as hanging.
        package var abandonment: Duration = .seconds(10)

        package init() {}
    }

    /// The caller of an access.
    struct Caller: Sendable {
        /// The key of its pipeline; nil if the access does not wait for other accesses.
        var pipeline: UInt64?
        /// Called with true once the access takes long and with false when it has ended after that. It must not block,
        /// nor use the pool.
        var waits: @Sendable (_ path: String, _ isWaiting: Bool) -> Void = { _, _ in }
    }

    private let workers: WorkerPool
    private let clock: any EngineClock
    private let queue: Mutex<PathQueue>
    /// Fires when an access may take long or hang.
    private let timer: TimerBox

    package init(clock: any EngineClock, limits: Limits = Limits()) {
        self.clock = clock
        workers = WorkerPool(threads: limits.threads)
        queue = Mutex(PathQueue(limits))
        timer = TimerBox()
        timer.set(clock.makeTimer { [weak self] in self?.check() })
    }

    /// The number of threads that exist now.
    package var threadCount: Int { workers.threadCount }
    /// The number of accesses that have not ended.
    var accesses: Int { queue.withLock { $0.count } }
    /// The access that has taken longest so far.
    package var oldestRunning: WorkerPool.RunningWork? { workers.oldestRunning }

    /// Makes an access on a thread of the pool.
    ///
    /// - Throws: ``FetchError/cancelled`` as soon as the task is cancelled; the error of the access; an error that
    ///   names the path if too many accesses hang.
    func run<Success: Sendable>(
        _ path: String, for caller: Caller = Caller(), _ access: @escaping @Sendable () throws(FetchError) -> Success
    ) async throws(FetchError) -> Success {
        guard !Task.isCancelled else { throw .cancelled }
        let outcome = Outcome<Success>()
        let entry = PathQueue.Entry(path: path, caller: caller, since: clock.now) {
            do throws(FetchError) {
                outcome.settle(.success(try access()))
            } catch {
                outcome.settle(.failure(error))
            }
        } fail: {
            outcome.settle(.failure(.failed($0)))
        }
        let (number, starts) = queue.withLock { $0.add(entry) }
        if starts { start(number) }
        rearm()
        let result = await outcome.value
        queue.withLock { $0.leave(number) }
        return try result.get()
    }

    private func start(_ number: UInt64) {
        workers.perform("a file of a source") { [self] ticket in
            if let access = queue.withLock({ $0.begin(number, ticket, at: clock.now) }) {
                rearm()
                access()
            }
            if let next = queue.withLock({ $0.end(number) }) { start(next) }
            rearm()
        }
    }

    /// Notifies the callers of accesses that take long, and replaces the threads of accesses that hang.
    private func check() {
        let findings = queue.withLock { $0.check(at: clock.now) }
        for ticket in findings.replaced { workers.replace(ticket) }
        for fail in findings.failed { fail() }
        rearm()
    }

    private func rearm() {
        // Inside the lock, so that of several threads the last one arms the timer with the current state.
        queue.withLock { queue in
            switch queue.rearmed(at: clock.now) {
            case .unchanged: break
            case .armed(let instant): timer.value?.arm(at: instant)
            case .disarmed: timer.value?.disarm()
            }
        }
    }
}

/// Holds the timer, which needs a reference to its pool and so is made after the pool.
private final class TimerBox: Sendable {
    private let state = Mutex<(any EngineTimer)?>(nil)
    var value: (any EngineTimer)? { state.withLock { $0 } }
    func set(_ timer: any EngineTimer) { state.withLock { $0 = timer } }
}
