import Synchronization

/// Measures the jobs of an ``EventLoop`` for its observer of slow jobs; without an observer it does nothing.
///
/// Only the loop's thread measures; any thread may set the observer.
final class JobWatch: Sendable {
    private struct Measurement {
        var timer: JobTimer
        var handler: @Sendable (SlowJob) -> Void
    }

    private let isObserved = Atomic(false)
    /// The observer for the next iteration on.
    private let pending = Mutex<(limit: Duration, handler: @Sendable (SlowJob) -> Void)?>(nil)
    private let measurement = Mutex<Measurement?>(nil)
    private let clocks: JobTimer.Clocks

    init(_ clocks: JobTimer.Clocks) { self.clocks = clocks }

    func observe(_ limit: Duration, _ handler: @escaping @Sendable (SlowJob) -> Void) {
        pending.withLock { $0 = (limit, handler) }
        isObserved.store(true, ordering: .releasing)
    }

    /// The loop's thread continues after `epoll_wait`.
    func iterationBegins() {
        guard isObserved.load(ordering: .acquiring) else { return }
        let pending = pending.withLock { $0.take() }
        measurement.withLock { measurement in
            if let pending {
                // The timer is made on the thread that it measures.
                measurement = Measurement(
                    timer: JobTimer(limit: pending.limit, clocks: clocks), handler: pending.handler)
            } else {
                measurement?.timer.iterationBegins()
            }
        }
    }

    func name(_ name: String) {
        guard isObserved.load(ordering: .relaxed) else { return }
        measurement.withLock { $0?.timer.name(name) }
    }

    func jobEnded(_ name: String) {
        guard isObserved.load(ordering: .relaxed) else { return }
        let slow = measurement.withLock { measurement in
            measurement?.timer.jobEnded(name).map { ($0, measurement?.handler) }
        }
        // Outside the lock: the handler may name a part.
        if let (job, handler) = slow ?? nil { handler?(job) }
    }
}
