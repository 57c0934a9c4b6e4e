import FreshetModel
import FreshetPipelines
import FreshetSignals

/// The engine's clock in a replay: it stands still until the replay moves it.
final class ReplayClock: EngineClock {
    private struct Entry {
        var instant: BootInstant
        /// Distinguishes timers of one instant: they expire in the order in which they were armed.
        var number: UInt64
        var handler: @Sendable () -> Void
    }

    private struct State {
        var now: BootInstant
        /// The armed timers as a binary heap, the earliest first. A disarmed timer stays until it is due.
        var heap: [Entry] = []
        /// The number of the entry that is valid, by timer.
        var armed: Set<UInt64> = []
        var lastNumber: UInt64 = 0
    }

    private let state: Lock<State>
    private let start: BootInstant
    private let wallStart: WallTime
    private let zones: @Sendable (String?) -> TimeZoneRules

    /// - Parameters:
    ///   - wallStart: the wall clock at the beginning.
    ///   - zones: the rules of a time zone; nil is the local one.
    init(wallStart: WallTime, zones: @escaping @Sendable (String?) -> TimeZoneRules) {
        // A fixed instant: a replay does not depend on the machine's clock. It is late enough for instants before it.
        start = BootInstant(nanoseconds: 1 << 62)
        self.wallStart = wallStart
        self.zones = zones
        state = Lock(State(now: start))
    }

    var now: BootInstant { state.withLock { $0.now } }
    var wallNow: WallTime { wall(now) }
    func zone(named name: String?) -> TimeZoneRules { zones(name) }

    /// The wall clock's time at an instant.
    func wall(_ instant: BootInstant) -> WallTime { wallStart.advanced(by: start.duration(to: instant)) }

    /// The instant of a wall-clock time.
    func instant(_ microseconds: Int64) -> BootInstant {
        start.advanced(by: wallStart.duration(to: WallTime(microseconds: microseconds)))
    }

    /// Moves the clock without calling the timers that became due, as a sleep of the machine does.
    func jump(to instant: BootInstant) {
        state.withLock { $0.now = max($0.now, instant) }
    }

    /// Moves the clock to the next timer until an instant, and returns its handler; or moves the clock to the instant
    /// and returns nil.
    func next(until target: BootInstant) -> (@Sendable () -> Void)? {
        state.withLock { state in
            while let first = state.heap.first, first.instant <= target {
                Self.removeFirst(&state.heap)
                guard state.armed.remove(first.number) != nil else { continue }
                state.now = max(state.now, first.instant)
                return first.handler
            }
            state.now = max(state.now, target)
            return nil
        }
    }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        ReplayTimer(clock: self, handler: handler)
    }

    /// Returns the number of the armed timer.
    fileprivate func arm(at instant: BootInstant, _ handler: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            state.armed.insert(state.lastNumber)
            state.heap.append(Entry(instant: instant, number: state.lastNumber, handler: handler))
            var index = state.heap.count - 1
            while index > 0, Self.isEarlier(state.heap[index], state.heap[(index - 1) / 2]) {
                state.heap.swapAt(index, (index - 1) / 2)
                index = (index - 1) / 2
            }
            return state.lastNumber
        }
    }

    fileprivate func disarm(_ number: UInt64) {
        state.withLock { state in
            state.armed.remove(number)
            // Timers that are armed again and again must not fill the memory.
            guard state.heap.count > 1024, state.heap.count > 4 * state.armed.count else { return }
            // A sorted array is a heap.
            state.heap = state.heap.filter { state.armed.contains($0.number) }.sorted(by: Self.isEarlier)
        }
    }

    private static func isEarlier(_ one: Entry, _ other: Entry) -> Bool {
        (one.instant, one.number) < (other.instant, other.number)
    }

    private static func removeFirst(_ heap: inout [Entry]) {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && isEarlier(heap[child], heap[least])
            {
                least = child
            }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}

/// A timer on the replay's clock.
private final class ReplayTimer: EngineTimer {
    private let clock: ReplayClock
    private let handler: @Sendable () -> Void
    private let armed = Lock<UInt64?>(nil)

    init(clock: ReplayClock, handler: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.handler = handler
    }

    func arm(at instant: BootInstant) {
        disarm()
        let number = clock.arm(at: instant, handler)
        armed.withLock { $0 = number }
    }

    func disarm() {
        if let number = armed.withLock({ $0.take() }) { clock.disarm(number) }
    }

    deinit { disarm() }
}
