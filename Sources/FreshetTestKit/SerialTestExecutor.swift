internal import FreshetSignals

/// An executor that runs jobs only when a test requests it: all jobs, one after the other, on the thread of the test.
///
/// Tasks that prefer it run in the order in which they became ready. So each run of a test has the same order of
/// events, and a test can wait for the moment at which no task is ready:
///
/// ```swift
/// let executor = SerialTestExecutor()
/// let task = Task(executorPreference: executor) { await subscription.next() }
/// try executor.runUntilIdle()      // the task has started and sleeps in next()
/// source.fire()
/// try executor.runUntilIdle()      // the task has ended
/// ```
///
/// It only runs the jobs that are enqueued on it. Work that a test starts on other threads is not synchronised with it.
public final class SerialTestExecutor: TaskExecutor {
    /// The default limit of jobs without an idle moment; above it, tasks are assumed to wake one another for ever.
    public static let defaultJobLimit = 1_000_000

    private struct State {
        var jobs: [UnownedJob] = []
        /// Tasks that continue when no other task is ready, first in, first out.
        var idlers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Lock(State())

    /// Makes an executor without jobs.
    public init() {}

    /// Adds a job; the runtime calls this from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs all ready jobs, and the jobs that become ready in the meantime, on the calling thread.
    ///
    /// - Parameter jobLimit: The maximum number of jobs.
    /// - Returns: The number of jobs that ran.
    /// - Throws: ``LivelockError`` if the limit was reached.
    @discardableResult
    public func runUntilIdle(jobLimit: Int = SerialTestExecutor.defaultJobLimit) throws(LivelockError) -> Int {
        var ran = 0
        while true {
            let jobs = state.withLock { state in
                let jobs = state.jobs
                state.jobs = []
                return jobs
            }
            if jobs.isEmpty {
                guard let idler = nextIdler() else { return ran }
                idler.resume()
                continue
            }
            for job in jobs {
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
            ran += jobs.count
            if ran >= jobLimit {
                throw LivelockError(jobs: ran)
            }
        }
    }

    /// Suspends the calling task, which must run on this executor, until no other task is ready.
    public func idle() async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.idlers.append(continuation) }
        }
    }

    /// Runs an asynchronous test body as a task on this executor, on the calling thread, until it has returned.
    ///
    /// - Throws: The error of the body; ``StallError`` if the body waits for an event that no task will cause (the body
    ///   is then cancelled); ``LivelockError``.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
        let outcome = Outcome<Value>()
        let task = Task(executorPreference: self) {
            do {
                outcome.set(.success(try await body()))
            } catch {
                outcome.set(.failure(error))
            }
        }
        try runUntilIdle()
        if let result = outcome.take() {
            return try result.get()
        }
        task.cancel()
        try runUntilIdle()
        throw StallError()
    }

    private func nextIdler() -> CheckedContinuation<Void, Never>? {
        state.withLock { $0.idlers.isEmpty ? nil : $0.idlers.removeFirst() }
    }
}

/// Holds a body's result for the thread that runs it.
private final class Outcome<Value: Sendable>: Sendable {
    private let result = Lock<Result<Value, any Error>?>(nil)

    func set(_ value: Result<Value, any Error>) {
        result.withLock { $0 = value }
    }

    func take() -> Result<Value, any Error>? {
        result.withLock { $0.take() }
    }
}

/// Tasks woke one another without an end.
public struct LivelockError: Error, CustomStringConvertible {
    /// The number of jobs that had run.
    public let jobs: Int

    /// The error as one sentence.
    public var description: String {
        "after \(jobs) jobs still not idle: look for tasks that yield or wake one another in a loop"
    }
}

/// A test body waits for an event that no task will cause.
public struct StallError: Error, CustomStringConvertible {
    /// The error as one sentence.
    public var description: String {
        "the body did not return although nothing is left to run: it waits for an event that no task will cause"
    }
}
