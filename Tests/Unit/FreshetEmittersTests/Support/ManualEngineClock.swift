import FreshetModel
import FreshetPipelines
import Synchronization

/// A clock with one timer that a test advances.
final class ManualEngineClock: EngineClock {
    private struct State {
        var now = BootInstant.now
        var due: BootInstant?
        var handler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var now: BootInstant { state.withLock { $0.now } }
    var wallNow: WallTime { WallTime(seconds: 0) }
    /// Whether a timer is armed.
    var isArmed: Bool { state.withLock { $0.due != nil } }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        state.withLock { $0.handler = handler }
        return Timer(clock: self)
    }

    /// Lets time pass and calls the timer's handler as often as it is due.
    func advance(by duration: Duration) {
        let end = now + duration
        while let handler = state.withLock({ state -> (@Sendable () -> Void)? in
            guard let due = state.due, due <= end else {
                state.now = end
                return nil
            }
            state.now = max(state.now, due)
            state.due = nil
            return state.handler
        }) { handler() }
    }

    private final class Timer: EngineTimer {
        let clock: ManualEngineClock

        init(clock: ManualEngineClock) { self.clock = clock }

        func arm(at instant: BootInstant) { clock.state.withLock { $0.due = instant } }
        func disarm() { clock.state.withLock { $0.due = nil } }
    }
}
