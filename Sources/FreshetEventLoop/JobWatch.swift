import Synchronization

/// Measures the jobs of an ``EventLoop`` for its observer of slow jobs; without one it does nothing.
///
/// The loop's thread alone measures; any thread may set the observer.
final class JobWatch: Sendable {
    private struct Measurement {
        var timer: JobTimer
        var handler: @Sendable (SlowJob) -> Void
    }

    private let isObserved = Atomic(false)
    /// What is to be measured from the next turn on.
    private let wanted = Mutex<(limit: Duration, handler: @Sendable (SlowJob) -> Void)?>(nil)
    private let measurement = Mutex<Measurement?>(nil)
    private let clocks: JobTimer.Clocks

    init(_ clocks: JobTimer.Clocks) { self.clocks = clocks }

    func observe(_ limit: Duration, _ handler: @escaping @Sendable (SlowJob) -> Void) {
        wanted.withLock { $0 = (limit, handler) }
        isObserved.store(true, ordering: .releasing)
    }

    /// The loop's thread goes on after it has asked the kernel for events.
    func turnBegins() {
        guard isObserved.load(ordering: .acquiring) else { return }
        let wanted = wanted.withLock { $0.take() }
        measurement.withLock { measurement in
            if let wanted {
                // The timer is made on the thread that it measures.
                measurement = Measurement(
                    timer: JobTimer(limit: wanted.limit, clocks: clocks), handler: wanted.handler)
            } else {
                measurement?.timer.turnBegins()
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
