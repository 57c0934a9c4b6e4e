import Dispatch
import Synchronization

/// An executor on the thread that steps it, so that a delivery can be measured without other threads.
///
/// It belongs to the benchmark, because it allocates nothing after warming up, and counts the jobs.
final class Stage: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var next = 0
        var total = 0
    }

    private let state = Mutex(State())

    /// The number of jobs so far: starting a task makes at least one.
    var jobCount: Int { state.withLock { $0.total } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock {
            $0.jobs.append(job)
            $0.total += 1
        }
    }

    /// Runs all ready jobs, and the jobs that become ready in the meantime.
    func step() {
        // The measured tasks become idle; otherwise the time limit of the whole run ends it.
        while let job = take() {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    private func take() -> UnownedJob? {
        state.withLock { state in
            guard state.next < state.jobs.count else {
                state.jobs.removeAll(keepingCapacity: true)
                state.next = 0
                return nil
            }
            defer { state.next += 1 }
            return state.jobs[state.next]
        }
    }

    /// Starts a task that takes all elements of a sequence, and steps until it waits.
    func startConsumer<S: AsyncSequence & Sendable>(
        to sequence: S, counting counter: @autoclosure @escaping @Sendable () -> Counter, keepingLast: Bool = false
    ) -> Task<Void, Never> where S.Element: Sendable {
        let task = Task(executorPreference: self) {
            var last: S.Element?
            var iterator = sequence.makeAsyncIterator()
            while let element = try? await iterator.next(isolation: nil) {
                counter().add()
                if keepingLast {
                    last = element
                    withUnsafePointer(to: last) { use($0) }
                }
            }
            _ = last
        }
        step()
        return task
    }
}

/// The number of deliveries.
final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add(_ number: Int = 1) {
        count.add(number, ordering: .relaxed)
    }
}

/// State that one task at a time uses, on any thread.
///
/// `@unchecked Sendable`: a sample's task has ended before the next one's begins (``runOnPool(within:_:)``); if it has
/// not ended in time, its subject is skipped from then on.
final class Held<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// Runs a body as a task on the global executor while this thread waits, and returns whether it ended in time.
func runOnPool(within limit: DispatchTimeInterval = .seconds(5), _ body: @escaping @Sendable () async -> Void) -> Bool {
    let done = DispatchSemaphore(value: 0)
    let task = Task {
        await body()
        done.signal()
    }
    guard done.wait(timeout: .now() + limit) == .success else {
        task.cancel()
        return false
    }
    return true
}
