public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// Something that can be armed for an instant; it then calls its handler once.
public protocol Alarm: AnyObject, Sendable {
    /// Sets the one instant at which the handler is to run; one that has passed is due at once.
    func arm(at deadline: ContinuousClock.Instant)
    /// Takes the instant back.
    func disarm()
}

/// A clock that makes alarms: an event loop, or in tests a clock that is moved by hand.
public protocol AlarmClock: Sendable {
    var now: ContinuousClock.Instant { get }
    /// Makes an alarm that is not armed.
    func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm
}

extension LoopTimer: Alarm {}

extension EventLoop: AlarmClock {
    /// Boot time: it goes on while the machine sleeps.
    public var now: ContinuousClock.Instant { .now }

    public func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm { LoopTimer(self, handler) }
}

/// A signal that fires at a planned instant, once.
///
/// The next instant is the planner's to name: nothing repeats by itself. What became due while the machine slept fires
/// once, at resume. All methods may be called from any thread; it fires on the clock's.
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
    ///   - clock: whose time it is.
    ///   - name: the signal's name.
    public init(_ clock: any AlarmClock, name: String = "timer") {
        self.clock = clock
        source = SignalSource(name, now: { clock.now })
        let alarm = clock.makeAlarm { [weak self] in self?.expire() }
        state.withLock { $0.alarm = alarm }
    }

    /// Fires when the planned instant has come.
    public var signal: Signal { source.signal }

    /// The instant that is planned; nil if there is none, or it has fired.
    public var planned: ContinuousClock.Instant? { state.withLock { $0.planned } }

    /// Plans the one instant to fire at, in place of any other. One that has passed fires at once.
    public func plan(at instant: ContinuousClock.Instant) {
        state.withLock { state in
            state.planned = instant
            state.alarm?.arm(at: instant)
        }
    }

    /// Fires no more until the next plan.
    public func cancel() {
        state.withLock { state in
            state.planned = nil
            state.alarm?.disarm()
        }
    }

    private func expire() {
        let now = clock.now
        let isDue = state.withLock { state -> Bool in
            // Another thread may have planned anew, or cancelled, when the alarm was already on its way.
            guard let planned = state.planned, planned <= now else { return false }
            state.planned = nil
            return true
        }
        if isDue { source.fire() }
    }
}
