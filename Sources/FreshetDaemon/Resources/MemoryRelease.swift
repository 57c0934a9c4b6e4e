import FreshetEventLoop
import Synchronization

/// Gives memory that the start or a run has freed back to the system, a moment later.
///
/// malloc(3) keeps small blocks that were freed: after a run over a list of 9,500 items, more than 80 MB that nothing
/// uses; after 100 pipelines ran together 8 MB. Returning them takes milliseconds, so a thread does it, and only if
/// there may be much to return.
final class MemoryRelease: Sendable {
    private struct State {
        var timer: LoopTimer?
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
            if let instant = state.schedule.runEnded(at: .now) { state.timer?.arm(at: instant) }
        }
    }

    private func release() {
        let before = ProcessMemory.anonymous
        let isUseful = state.withLock { state in
            guard let before else {
                state.schedule.isUnknown()
                return false
            }
            switch state.schedule.decision(used: before, now: .now) {
            case .release: return true
            case .keep: return false
            case .lookAgain(let instant):
                state.timer?.arm(at: instant)
                return false
            }
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

    enum Decision: Hashable {
        case release
        /// There is little to return.
        case keep
        /// There was nothing to return the last time, and the process has not grown since then. The memory may be in
        /// use.
        case lookAgain(at: Instant)
    }

    /// The time from the end of a run to the return: the last memory of a run is freed a little after its end, and runs
    /// that end together cause one return.
    static let delay = Duration.seconds(1)
    /// The time between two returns. While the process does not grow, it doubles after each return that was not useful.
    static let intervals = Duration.seconds(5)...Duration.seconds(300)
    /// The bytes that are worth a return, if the process used `least` before: 100 pipelines that run together leave 8
    /// MiB in a process of 5 MiB. A return takes milliseconds, and the next runs get the same pages from the system
    /// again.
    static func useful(least: UInt64) -> UInt64 { max(1 << 20, least / 8) }

    /// The least memory that the process has used after a return, in bytes.
    private var least: UInt64
    /// The memory that it used after the last return.
    private var last: UInt64
    private var interval = intervals.lowerBound
    /// The last return.
    private var returned: Instant?
    /// When the next decision is due; nil: none is.
    private var due: Instant?

    /// - Parameter used: the memory that the process uses now, in bytes.
    init(used: UInt64) { (least, last) = (used, used) }

    /// A run has ended.
    ///
    /// - Returns: when to decide; nil: a decision is due before.
    mutating func runEnded(at end: Instant) -> Instant? {
        var next = end + Self.delay
        if let returned { next = max(returned + Self.intervals.lowerBound, next) }
        if let due, due <= next { return nil }
        due = next
        return next
    }

    /// A decision is due, and the memory that the process uses is not known.
    mutating func isUnknown() { due = nil }

    /// Whether there may be enough memory to return. If so, the next return follows an interval later.
    mutating func decision(used: UInt64, now: Instant) -> Decision {
        due = nil
        (least, last) = (min(least, used), min(last, used))
        let useful = Self.useful(least: least)
        guard used - least >= useful else { return .keep }
        if used - last < useful, let returned, now < returned + interval {
            due = returned + interval
            return .lookAgain(at: returned + interval)
        }
        returned = now
        return .release
    }

    /// The memory that the process used before and after a return, in bytes.
    mutating func hasReturned(before: UInt64, after: UInt64) {
        (least, last) = (min(least, after), after)
        let wasUseful = before >= after && before - after >= Self.useful(least: least)
        interval = wasUseful ? Self.intervals.lowerBound : min(interval * 2, Self.intervals.upperBound)
    }
}
