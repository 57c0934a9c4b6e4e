import FreshetEventLoop
import Glibc
import Synchronization

/// Reports that wait until the loop has no other job that is ready: they are for people, and the requests that a signal
/// causes begin before them. They stay in their order.
///
/// A report waits for less than a millisecond, unless the loop is busy. A report that must not wait, because its reader
/// may look for it immediately, comes after the waiting ones (``flush()``).
///
/// Safe to call from any thread. The reports are made on the loop's thread, or on the thread of a caller of ``flush()``.
final class DeferredReports: Sendable {
    private struct State {
        var reports: [@Sendable () -> Void] = []
        var timer: LoopTimer?
        /// The thread that makes reports, so that a report may call ``DeferredReports/flush()`` too.
        var maker: pthread_t?
    }

    private let state = Mutex(State())
    /// Held while reports are made, so that none overtakes another one.
    private let making = Mutex(())

    init(_ loop: EventLoop) {
        // A timer that is due expires in the loop's next iteration, after all jobs that are ready now.
        let timer = LoopTimer(loop, named: "reports") { [weak self] in self?.flush() }
        state.withLock { $0.timer = timer }
    }

    /// Makes a report soon.
    func add(_ report: @escaping @Sendable () -> Void) {
        let timer = state.withLock { state -> LoopTimer? in
            state.reports.append(report)
            return state.reports.count == 1 ? state.timer : nil
        }
        timer?.arm(at: .now)
    }

    /// Makes all waiting reports now; if another thread makes them, it waits for their end.
    func flush() {
        let me = pthread_self()
        guard state.withLock({ $0.maker != me && !($0.reports.isEmpty && $0.maker == nil) }) else { return }
        making.withLock { _ in
            let reports = state.withLock { state in
                defer { state.reports = [] }
                state.maker = me
                return state.reports
            }
            for report in reports { report() }
            state.withLock { $0.maker = nil }
        }
    }
}
