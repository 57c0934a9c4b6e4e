import FreshetEventLoop
import Synchronization

/// Gives memory that the start or a run has freed back to the system, a moment later.
///
/// malloc(3) keeps small blocks that were freed: after a run over a list of 9,500 items, more than 80 MB that nothing
/// uses; after the start of 10,000 pipelines 4 MB. Returning them takes milliseconds, so a thread does it, and only if
/// there may be much to return.
final class MemoryRelease: Sendable {
    private struct State {
        var timer: LoopTimer?
        var isDue = false
        var schedule: MemoryReleaseSchedule
    }

    private let state: Mutex<State>
    private let pool = WorkerPool(threads: 1)

    init(_ loop: EventLoop) {
        state = Mutex(State(schedule: MemoryReleaseSchedule(used: ProcessMemory.anonymous ?? 0)))
        let timer = LoopTimer(loop, named: "memory") { [weak self] in self?.release() }
        state.withLock { $0.timer = timer }
    }

    /// The start or a run has ended, and may have freed memory. May be called from any thread.
    func mayBeUseful() {
        state.withLock { state in
            guard !state.isDue else { return }
            state.isDue = true
            state.timer?.arm(at: state.schedule.next(after: .now))
        }
    }

    private func release() {
        let before = ProcessMemory.anonymous
        let isUseful = state.withLock { state in
            state.isDue = false
            guard let before else { return false }
            return state.schedule.isUseful(used: before, now: .now)
        }
        guard isUseful, let before else { return }
        pool.perform("memory") { [weak self] in
            ProcessMemory.returnFreed()
            guard let after = ProcessMemory.anonymous else { return }
            self?.state.withLock { $0.schedule.hasReturned(before: before, after: after) }
        }
    }
}

/// Decides when memory is returned.
struct MemoryReleaseSchedule {
    typealias Instant = ContinuousClock.Instant

    /// The time from the end of a run to the return: the last memory of a run is freed a little after its end, and runs
    /// that end together cause one return.
    static let delay = Duration.seconds(1)
    /// The time between two returns. It doubles after each return that was not useful, for example because the memory
    /// is in use.
    static let intervals = Duration.seconds(5)...Duration.seconds(300)
    /// A return is useful if it returns as many bytes.
    static let useful: UInt64 = 16 << 20

    /// The least memory that the process has used after a return, in bytes.
    private var least: UInt64
    private var interval = intervals.lowerBound
    private var earliest: Instant?

    /// - Parameter used: the memory that the process uses now, in bytes.
    init(used: UInt64) { least = used }

    /// When memory may be returned after the end of a run.
    func next(after end: Instant) -> Instant {
        let next = end + Self.delay
        return earliest.map { max($0, next) } ?? next
    }

    /// Whether there may be enough memory to return. If so, the next return follows an interval later.
    mutating func isUseful(used: UInt64, now: Instant) -> Bool {
        least = min(least, used)
        guard used - least >= Self.useful else { return false }
        earliest = now + interval
        return true
    }

    /// The memory that the process used before and after a return, in bytes.
    mutating func hasReturned(before: UInt64, after: UInt64) {
        least = min(least, after)
        interval =
            before >= after && before - after >= Self.useful
            ? Self.intervals.lowerBound : min(interval * 2, Self.intervals.upperBound)
    }
}
