import FreshetSystemd
import Synchronization

/// The child tasks of a daemon, and its end. No task is left when ``run()`` returns.
///
/// Safe to call from any thread.
final class DaemonTasks: Sendable {
    typealias Job = @Sendable () async -> Void

    /// The jobs that ``run()`` starts.
    private let jobs: AsyncStream<Job>
    private let input: AsyncStream<Job>.Continuation
    private let status = Mutex<DaemonExit?>(nil)
    private let notifier: Notifier
    /// Called at the first call of ``end(_:)``.
    private let atEnd = Mutex<[@Sendable () -> Void]>([])

    init(_ notifier: Notifier) {
        self.notifier = notifier
        (jobs, input) = AsyncStream.makeStream()
    }

    /// Starts a job as a child task. A job that is added before ``run()`` starts with it, and a job that is added after
    /// ``end(_:)`` does not start.
    func add(_ job: @escaping Job) {
        input.yield(job)
    }

    /// Runs the jobs until ``end(_:)`` is called, then cancels and awaits them.
    @DaemonActor
    func run() async {
        await withDiscardingTaskGroup { group in
            for await job in jobs { group.addTask { await job() } }
            group.cancelAll()
        }
    }

    /// Ends the daemon: cancels runs, waits for them, and finishes commits in progress. The first failure is kept as the
    /// exit status.
    func end(_ status: DaemonExit = .success) {
        for job in atEnd.withLock({ jobs in
            defer { jobs = [] }
            return jobs
        }) {
            job()
        }
        self.status.withLock { if $0 == nil || $0 == .success { $0 = status } }
        notifier.stopping(status: "stopping")
        input.finish()
    }

    /// Calls this function, which must not wait, when the daemon begins to end. A function that is added after that is
    /// not called.
    func addAtEnd(_ job: @escaping @Sendable () -> Void) { atEnd.withLock { $0.append(job) } }

    /// Whether ``end(_:)`` was called.
    var isEnding: Bool { status.withLock { $0 != nil } }

    /// The exit status of the daemon.
    var exit: DaemonExit { status.withLock { $0 } ?? .success }
}
