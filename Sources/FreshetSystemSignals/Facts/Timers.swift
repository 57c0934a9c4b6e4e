public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// Timers that include the time during which the machine sleeps.
///
/// ```swift
/// for await _ in Timers.every(.seconds(3_600)).signal { … }
/// ```
public enum Timers {
    /// A timer that fires periodically, from its first subscription on.
    ///
    /// - Parameters:
    ///   - period: The time between two firings; at least ``RepeatingTimer/shortestPeriod``.
    ///   - loop: The event loop to use; nil: the library's own thread.
    public static func every(_ period: Duration, on loop: EventLoop? = nil) -> RepeatingTimer {
        RepeatingTimer(every: period, in: SourceHost(loop))
    }
}

/// A timer that fires at multiples of its period, counted from its first subscription (``Timers``).
///
/// It is a description, and costs nothing. It runs while there is an iteration of `changes` or a subscription to
/// `signal`, once for all subscribers of this value or its copies. It ends with the last subscription, and a later one
/// starts it again. Firings that became due while the machine slept are one firing at resume; the following ones keep
/// their rhythm. See <doc:Facts> for the properties that all sources share.
public struct RepeatingTimer: Sendable {
    /// The shortest period; with a shorter one the program would do nothing else.
    public static let shortestPeriod: Duration = .milliseconds(1)

    /// The time between two firings.
    public let period: Duration
    private let host: SourceHost
    private let shared = Shared<Ticker>()
    private let makeClock: @Sendable (SystemSources) -> any AlarmClock

    init(
        every period: Duration, in host: SourceHost,
        clock: @escaping @Sendable (SystemSources) -> any AlarmClock = { $0.loop }
    ) {
        self.period = max(period, Self.shortestPeriod)
        self.host = host
        makeClock = clock
    }

    /// The current fact, then each change; a slow reader gets the newest.
    public var changes: some AsyncSequence<TimerFact, Never> & Sendable {
        host.facts { [self] sources in
            let ticker = ticker(sources)
            return (ticker.current, ticker)
        } otherwise: { reason in
            TimerFact(obstacle: reason)
        }
    }

    /// The period has passed: `timer`.
    public var signal: Signal {
        host.signal { [self] sources in
            let ticker = ticker(sources)
            return (ticker.signal, ticker)
        }
    }

    private func ticker(_ sources: SystemSources) -> Ticker {
        shared.get { Ticker(makeClock(sources), every: period) }
    }
}

/// The state of a timer.
public struct TimerFact: Hashable, Sendable, CustomStringConvertible {
    /// When it fires next, on the boot clock; nil: the timer does not run.
    public var next: ContinuousClock.Instant?
    /// When it fired last; nil: not yet.
    public var firedAt: ContinuousClock.Instant?
    /// Why the timer does not run, and how to repair it, as a sentence for people. Nil: it runs.
    public var obstacle: String?

    /// Makes a fact, for tests.
    public init(
        next: ContinuousClock.Instant? = nil, firedAt: ContinuousClock.Instant? = nil, obstacle: String? = nil
    ) {
        self.next = next
        self.firedAt = firedAt
        self.obstacle = obstacle
    }

    /// For people: `running`, or the obstacle.
    public var description: String { obstacle ?? "running" }
}

/// A running timer.
private final class Ticker: Sendable {
    let current: CurrentValue<TimerFact>
    var signal: Signal { source.signal }

    private let source: SignalSource
    private let clock: any AlarmClock
    private let period: Duration
    private let alarm = Mutex<(any Alarm)?>(nil)

    init(_ clock: any AlarmClock, every period: Duration) {
        self.clock = clock
        self.period = period
        source = SignalSource("timer", now: { clock.now })
        let next = clock.now + period
        current = CurrentValue(TimerFact(next: next))
        let alarm = clock.makeAlarm { [weak self] in self?.expire() }
        self.alarm.withLock { $0 = alarm }
        alarm.arm(at: next)
    }

    /// Called on the clock's thread.
    private func expire() {
        let now = clock.now
        guard let due = current.value.next, due <= now else { return }
        // The next multiple in the future: missed firings are one firing.
        let next = due + period * (Int((now - due) / period) + 1)
        current.value = TimerFact(next: next, firedAt: now)
        alarm.withLock { $0 }?.arm(at: next)
        source.fire()
    }
}
