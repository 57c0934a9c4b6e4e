import Dispatch
import Synchronization

/// An executor on the thread that steps it, so that a delivery can be measured without another thread's share in it.
///
/// It is the benchmark's own, because it allocates nothing once it is warm, and counts the jobs.
final class Stage: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var next = 0
        var total = 0
    }

    private let state = Mutex(State())

    /// How many jobs there have been: what starts a task makes at least one.
    var jobCount: Int { state.withLock { $0.total } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock {
            $0.jobs.append(job)
            $0.total += 1
        }
    }

    /// Runs what is ready, and what becomes ready meanwhile.
    func step() {
        // Whatever is measured comes to rest; if not, the deadline of the whole run ends it.
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

    /// Starts a task that takes all that a sequence delivers, and steps until it waits.
    func listen<S: AsyncSequence & Sendable>(
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

/// How much was delivered.
final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add(_ number: Int = 1) {
        count.add(number, ordering: .relaxed)
    }
}

/// What one task at a time uses, on whatever thread that task is.
///
/// `@unchecked Sendable`: a sample's task has ended before the next one's begins (``runOnPool(within:_:)``); if it has not
/// in time, its subject is left out from then on.
final class Held<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// Runs a body as a task on the global executor while this thread waits, and says whether it ended in time.
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
