internal import FreshetSignals

/// A clock that stands still until a test moves it.
///
/// Its instants are `ContinuousClock.Instant`. Use it wherever time is a parameter: pass ``now`` to state machines,
/// `now: { clock.now }` to sources, and the clock itself to operators.
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

    /// Makes a clock whose current instant is `start`.
    public init(start: Instant = .now) {
        self.start = start
        state = Lock(ManualClockStateMachine(now: start))
    }

    /// The current instant of the clock.
    public var now: Instant { state.withLock { $0.now } }

    /// How far the clock was moved since it was made.
    public var elapsed: Duration { start.duration(to: now) }

    /// Zero: the clock can be moved by any amount.
    public var minimumResolution: Duration { .zero }

    /// The number of tasks that sleep on this clock, to test which timers exist.
    public var sleeperCount: Int { state.withLock { $0.sleeperCount } }

    /// The earliest deadline of a sleeping task, or nil if no task sleeps.
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

    /// Moves the clock and wakes the tasks that are due on the way, each at its deadline, in the order of the
    /// deadlines.
    ///
    /// The woken tasks run when their executor runs them. If such a task starts another sleep within the remaining
    /// time, that sleep is due at the end of the move. To make it due on the way, use one of the other two methods.
    ///
    /// - Parameter duration: Zero or more: a clock never goes back.
    public func advance(by duration: Duration) {
        let target = now.advanced(by: duration)
        while wakeNext(until: target) {}
    }

    /// Moves the clock. The executor runs until it is idle before the move, at each deadline on the way, and after the
    /// move.
    ///
    /// For tests that do not run as a task on the executor.
    ///
    /// - Throws: ``LivelockError`` if the executor does not become idle.
    public func advance(by duration: Duration, draining executor: SerialTestExecutor) throws(LivelockError) {
        let target = now.advanced(by: duration)
        repeat {
            try executor.runUntilIdle()
        } while wakeNext(until: target)
        try executor.runUntilIdle()
    }

    /// Moves the clock. It waits until the executor is idle before the move, at each deadline on the way, and after the
    /// move.
    ///
    /// For tests that run as a task on the executor.
    public func advance(by duration: Duration, awaitingIdle executor: SerialTestExecutor) async {
        let target = now.advanced(by: duration)
        repeat {
            await executor.idle()
        } while wakeNext(until: target)
        await executor.idle()
    }

    /// Moves the clock without waking the tasks that are due then; ``wakeDue()`` does that.
    func show(_ instant: Instant) {
        state.withLock { $0.show(instant) }
    }

    /// Wakes all tasks that are due.
    func wakeDue() {
        let target = now
        while wakeNext(until: target) {}
    }

    /// Moves the clock to the next deadline and wakes its task; or moves it to the target and returns false.
    func wakeNext(until target: Instant) -> Bool {
        guard let sleeper = state.withLock({ $0.advance(until: target) }) else { return false }
        sleeper.resume(returning: true)
        return true
    }
}

/// The instant of a manual clock, and its sleeping tasks with their deadlines.
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
    /// Sorted by deadline, then by arrival.
    private var entries: [Entry] = []
    /// Sleepers that were cancelled before they slept.
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

    /// Begins a sleep. Returns a result if the sleep ends immediately: true when due, false when cancelled.
    mutating func sleep(_ key: Key, until deadline: ContinuousClock.Instant, _ sleeper: Sleeper) -> Bool? {
        if cancelled.remove(key) != nil { return false }
        if deadline <= now { return true }
        let index = entries.firstIndex { $0.deadline > deadline } ?? entries.endIndex
        entries.insert(Entry(key: key, deadline: deadline, sleeper: sleeper), at: index)
        return nil
    }

    /// Ends a sleep before its deadline.
    mutating func cancel(_ key: Key) -> Sleeper? {
        guard let index = entries.firstIndex(where: { $0.key == key }) else {
            cancelled.insert(key)
            return nil
        }
        return entries.remove(at: index).sleeper
    }

    /// A sleep has ended: discards a cancellation that came too late.
    mutating func forget(_ key: Key) {
        cancelled.remove(key)
    }

    /// Moves to the first deadline until `target` and returns its sleeper; or moves to `target` and returns nil.
    mutating func advance(until target: ContinuousClock.Instant) -> Sleeper? {
        guard let first = entries.first, first.deadline <= target else {
            show(target)
            return nil
        }
        show(first.deadline)
        return entries.removeFirst().sleeper
    }

    /// Moves to an instant, unless that instant has passed.
    mutating func show(_ instant: ContinuousClock.Instant) {
        now = max(now, instant)
    }
}
