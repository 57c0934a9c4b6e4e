import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import Synchronization

/// Stores the runs and checks that wait for the index: ``delay`` after the first, and sooner if there are many.
///
/// Safe to call from any thread; a worker writes.
final class RecordWriter: Sendable {
    /// What a crash may lose.
    static let delay = Duration.milliseconds(250)
    /// As many records are stored without the delay.
    static let batch = 2048
    /// The longest delay while another process has locked the index, or while there is no space.
    static let longestDelay = Duration.seconds(60)

    private let cache: LocalCache
    private let workers: WorkerPool
    private let clock: any EngineClock
    private let report: @Sendable (CacheError) -> Void
    private let state = Lock(State())

    private struct State {
        var timer: (any EngineTimer)?
        /// The timer is armed, or a worker is about to write.
        var isScheduled = false
        /// How long the next records wait: longer after each attempt that failed.
        var delay = RecordWriter.delay
    }

    /// - Parameter report: called with an error of the index.
    init(
        _ cache: LocalCache, _ workers: WorkerPool, _ clock: any EngineClock,
        report: @escaping @Sendable (CacheError) -> Void
    ) {
        self.cache = cache
        self.workers = workers
        self.clock = clock
        self.report = report
    }

    /// Records wait: schedules their write.
    func schedule(_ count: Int) {
        if count == Self.batch { write() } else { schedule() }
    }

    private func schedule() {
        state.withLock { state in
            guard !state.isScheduled else { return }
            state.isScheduled = true
            let timer = state.timer ?? clock.makeTimer { [weak self] in self?.write() }
            state.timer = timer
            timer.arm(at: clock.now.advanced(by: state.delay))
        }
    }

    /// Writes without the delay.
    func write() {
        workers.perform("index") { [self] in
            // Records that come from now on need a new timer.
            state.withLock { $0.isScheduled = false }
            var (waiting, isObstructed) = (0, true)
            do throws(CacheError) {
                (waiting, isObstructed) = try cache.records.storeDeferred(at: .now)
            } catch {
                // Only rejected content was not removed.
                waiting = cache.records.waiting
                report(error)
            }
            state.withLock { $0.delay = isObstructed ? min($0.delay * 2, Self.longestDelay) : Self.delay }
            if waiting > 0 { schedule() }
        }
    }
}
