import FreshetEventLoop
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

/// The loop as the main and the global executor of this process, so that whatever a dependency starts stays on its
/// one thread, and an idle daemon has nothing that wakes up: libdispatch's executor would, once a second.
///
/// This is the only file that uses the experimental entry point.
enum LoopExecutors: ExecutorFactory {
    /// The loop of the process, or why there is none.
    private static let adapter = Result { () throws(SystemCallError) in LoopExecutor(loop: try EventLoop()) }

    static var mainExecutor: any MainExecutor { installed }
    static var defaultExecutor: any TaskExecutor { installed }

    private static var installed: LoopExecutor {
        switch adapter {
        case .success(let adapter): return adapter
        // safe: `install()` asks the runtime for executors only if there is a loop.
        case .failure(let error): preconditionFailure("installed without a loop: \(error)")
        }
    }

    /// Makes a loop the executor of everything in this process. Call it first of all in `main`.
    ///
    /// - Returns: the loop, for `main` to run.
    static func install() throws(SystemCallError) -> EventLoop {
        let loop = try adapter.get().loop
        _createExecutors(factory: Self.self)
        return loop
    }
}

/// What the runtime asks of a process's executor and ``EventLoop``, as a public class, cannot promise: the protocols
/// are not public yet.
private final class LoopExecutor: MainExecutor, TaskExecutor, SchedulingExecutor {
    let loop: EventLoop

    init(loop: EventLoop) { self.loop = loop }

    func run() throws { loop.run() }
    func stop() { loop.stop() }
    func checkIsolated() { loop.checkIsolated() }
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(job) }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
    ) {
        // The standard library's clocks measure in `Duration`; another one's sleeps are not for the executor.
        loop.enqueue(job, after: delay as? Duration ?? .zero)
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
        loop.enqueue(job, after: clock.now.duration(to: instant) as? Duration ?? .zero)
    }
}
