internal import FreshetSignals

/// An executor that runs nothing until a test says so, and then everything, one job after the other, on the thread
/// that says so.
///
/// Tasks that prefer it take their turns in the order in which they became ready. Two runs of a test take the same
/// course, and "now nothing more can happen" is a moment that a test can wait for:
///
/// ```swift
/// let executor = SerialTestExecutor()
/// let task = Task(executorPreference: executor) { await subscription.next() }
/// try executor.runUntilIdle()      // the task has started and sleeps in next()
/// source.fire()
/// try executor.runUntilIdle()      // the task has ended
/// ```
///
/// It sees the jobs that are handed to it. What a test starts elsewhere, on other threads, comes when it comes.
public final class SerialTestExecutor: TaskExecutor {
    /// More jobs without an idle moment than this are taken for tasks that wake one another for ever.
    public static let defaultJobLimit = 1_000_000

    private struct State {
        var jobs: [UnownedJob] = []
        /// Tasks that continue when nothing else is ready, first come, first served.
        var idlers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Lock(State())

    /// Makes an executor with nothing to do.
    public init() {}

    /// Adds a job; called by the runtime, from any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs all that is ready, and what becomes ready meanwhile, on the calling thread.
    ///
    /// - Parameter jobLimit: How many jobs may run before it gives up.
    /// - Returns: How many jobs ran.
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

    /// Suspends the calling task, which must run on this executor, until nothing else is ready.
    public func idle() async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.idlers.append(continuation) }
        }
    }

    /// Runs an asynchronous test body as a task on this executor, on the calling thread, until it has returned.
    ///
    /// - Throws: What the body throws; ``StallError`` if it waits for something that nobody is going to do (it is
    ///   cancelled then); ``LivelockError``.
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

/// Where a body's result waits for the thread that runs it.
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
    /// How many jobs had run by then.
    public let jobs: Int

    /// One sentence for people.
    public var description: String {
        "after \(jobs) jobs still not idle: look for tasks that yield or wake one another in a loop"
    }
}

/// A test body waits for something that nobody is going to do.
public struct StallError: Error, CustomStringConvertible {
    /// One sentence for people.
    public var description: String {
        "the body did not return although nothing is left to run: it waits for an event that no task will cause"
    }
}
