public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// An alarm that is armed for an instant and then calls its handler once.
public protocol Alarm: AnyObject, Sendable {
    /// Arms the alarm for an instant, which replaces an earlier one. An instant in the past is due immediately.
    func arm(at deadline: ContinuousClock.Instant)
    /// Disarms the alarm.
    func disarm()
}

/// A clock that makes alarms: an event loop, or a manual clock in tests.
public protocol AlarmClock: Sendable {
    var now: ContinuousClock.Instant { get }
    /// Makes an alarm that is not armed.
    func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm
}

extension LoopTimer: Alarm {}

extension EventLoop: AlarmClock {
    /// Boot time, which continues while the machine sleeps.
    public var now: ContinuousClock.Instant { .now }

    public func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm { LoopTimer(self, handler) }
}

/// A signal that fires at a planned instant, once.
///
/// It does not repeat by itself: plan each instant. An instant that passed while the machine slept fires once, at
/// resume. All methods may be called from any thread; the signal fires on the clock's thread.
public final class PlannedTimer: Sendable {
    private struct State {
        var alarm: (any Alarm)?
        var planned: ContinuousClock.Instant?
    }

    private let source: SignalSource
    private let clock: any AlarmClock
    private let state = Mutex(State())

    /// Makes a timer with nothing planned.
    ///
    /// - Parameters:
    ///   - clock: The clock of the planned instants.
    ///   - name: The signal's name.
    public init(_ clock: any AlarmClock, name: String = "timer") {
        self.clock = clock
        source = SignalSource(name, now: { clock.now })
        let alarm = clock.makeAlarm { [weak self] in self?.expire() }
        state.withLock { $0.alarm = alarm }
    }

    /// Fires when the planned instant has come.
    public var signal: Signal { source.signal }

    /// The planned instant; nil if there is none, or if it has fired.
    public var planned: ContinuousClock.Instant? { state.withLock { $0.planned } }

    /// Plans an instant, which replaces an earlier one. An instant in the past fires immediately.
    public func plan(at instant: ContinuousClock.Instant) {
        state.withLock { state in
            state.planned = instant
            state.alarm?.arm(at: instant)
        }
    }

    /// Cancels the planned instant.
    public func cancel() {
        state.withLock { state in
            state.planned = nil
            state.alarm?.disarm()
        }
    }

    private func expire() {
        let now = clock.now
        let isDue = state.withLock { state -> Bool in
            // Another thread may have planned another instant, or cancelled, after the alarm expired.
            guard let planned = state.planned, planned <= now else { return false }
            state.planned = nil
            return true
        }
        if isDue { source.fire() }
    }
}
