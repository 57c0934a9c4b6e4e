internal import FreshetSignals

/// A clock that stands still until a test moves it.
///
/// Its instants are `ContinuousClock.Instant`, so it also drives what takes its time as such a parameter: state
/// machines by ``now``, sources by `now: { clock.now }`, and operators with a clock as the clock itself.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task(executorPreference: executor) { try await clock.sleep(for: .seconds(5)) }
/// try clock.advance(by: .seconds(5), draining: executor)   // the task has ended
/// ```
public final class ManualClock: Clock {
    /// A length of time.
    public typealias Duration = Swift.Duration
    /// A point in time, of the same type as the default clock's.
    public typealias Instant = ContinuousClock.Instant

    /// When the clock was made, by itself.
    public let start: Instant
    private let state: Lock<ManualClockStateMachine<CheckedContinuation<Bool, Never>>>

    /// Makes a clock that shows `start`.
    public init(start: Instant = .now) {
        self.start = start
        state = Lock(ManualClockStateMachine(now: start))
    }

    /// What the clock shows.
    public var now: Instant { state.withLock { $0.now } }

    /// How far it was moved since it was made.
    public var elapsed: Duration { start.duration(to: now) }

    /// Zero: it can be moved by any amount.
    public var minimumResolution: Duration { .zero }

    /// How many tasks sleep on this clock, for tests of who holds a timer.
    public var sleeperCount: Int { state.withLock { $0.sleeperCount } }

    /// When the first of them is due, or nil if none sleeps.
    public var nextDeadline: Instant? { state.withLock { $0.nextDeadline } }

    /// Suspends until the clock shows `deadline` or later.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let sleeper = state.withLock { $0.newSleeper() }
        let isDue = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { $0.sleep(sleeper, until: deadline, continuation) }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.cancel(sleeper) }?.resume(returning: false)
        }
        state.withLock { $0.forget(sleeper) }
        guard isDue else { throw CancellationError() }
    }

    /// Moves the clock and wakes who is due on the way, each at its deadline, in the order of the deadlines.
    ///
    /// Those that it wakes run when their executor gets to it. A sleep that one of them begins for less than what is
    /// left of the way is due when the clock has arrived; to have it due on the way, use one of the other two.
    ///
    /// - Parameter duration: At least zero: a clock never goes back.
    public func advance(by duration: Duration) {
        let target = now.advanced(by: duration)
        while wakeNext(until: target) {}
    }

    /// Moves the clock, and at each deadline on the way, before the first and after the last lets the executor run
    /// until it is idle.
    ///
    /// For tests that are not themselves a task on the executor.
    ///
    /// - Throws: ``LivelockError`` if the executor does not become idle.
    public func advance(by duration: Duration, draining executor: SerialTestExecutor) throws(LivelockError) {
        let target = now.advanced(by: duration)
        repeat {
            try executor.runUntilIdle()
        } while wakeNext(until: target)
        try executor.runUntilIdle()
    }

    /// Moves the clock, and at each deadline on the way, before the first and after the last waits until the executor
    /// is idle.
    ///
    /// For tests that are a task on the executor.
    public func advance(by duration: Duration, awaitingIdle executor: SerialTestExecutor) async {
        let target = now.advanced(by: duration)
        repeat {
            await executor.idle()
        } while wakeNext(until: target)
        await executor.idle()
    }

    /// Moves the clock without waking those that are due then; ``wakeDue()`` does that.
    func show(_ instant: Instant) {
        state.withLock { $0.show(instant) }
    }

    /// Wakes all that are due.
    func wakeDue() {
        let target = now
        while wakeNext(until: target) {}
    }

    /// Moves to the next deadline and wakes who is due then, or to the target and returns false.
    func wakeNext(until target: Instant) -> Bool {
        guard let sleeper = state.withLock({ $0.advance(until: target) }) else { return false }
        sleeper.resume(returning: true)
        return true
    }
}

/// What a manual clock shows, and who sleeps until when.
struct ManualClockStateMachine<Sleeper> {
    struct Key: Hashable {
        fileprivate let number: UInt64
    }

    private struct Entry {
        let key: Key
        let deadline: ContinuousClock.Instant
        let sleeper: Sleeper
    }

    private(set) var now: ContinuousClock.Instant
    /// By deadline, then by arrival.
    private var entries: [Entry] = []
    /// Cancelled before they slept.
    private var cancelled: Set<Key> = []
    private var lastNumber: UInt64 = 0

    init(now: ContinuousClock.Instant) {
        self.now = now
    }

    var sleeperCount: Int { entries.count }
    var nextDeadline: ContinuousClock.Instant? { entries.first?.deadline }

    mutating func newSleeper() -> Key {
        lastNumber += 1
        return Key(number: lastNumber)
    }

    /// Begins a sleep. Returns how it ends, if it ends at once: true when due, false when cancelled.
    mutating func sleep(_ key: Key, until deadline: ContinuousClock.Instant, _ sleeper: Sleeper) -> Bool? {
        if cancelled.remove(key) != nil { return false }
        if deadline <= now { return true }
        let place = entries.firstIndex { $0.deadline > deadline } ?? entries.endIndex
        entries.insert(Entry(key: key, deadline: deadline, sleeper: sleeper), at: place)
        return nil
    }

    /// Ends a sleep before its time.
    mutating func cancel(_ key: Key) -> Sleeper? {
        guard let place = entries.firstIndex(where: { $0.key == key }) else {
            cancelled.insert(key)
            return nil
        }
        return entries.remove(at: place).sleeper
    }

    /// A sleep is over: a cancellation that came too late is forgotten.
    mutating func forget(_ key: Key) {
        cancelled.remove(key)
    }

    /// Shows the first deadline until `target` and returns who is due then; or shows `target` and returns nil.
    mutating func advance(until target: ContinuousClock.Instant) -> Sleeper? {
        guard let first = entries.first, first.deadline <= target else {
            show(target)
            return nil
        }
        show(first.deadline)
        return entries.removeFirst().sleeper
    }

    /// Shows an instant, unless it has passed.
    mutating func show(_ instant: ContinuousClock.Instant) {
        now = max(now, instant)
    }
}
