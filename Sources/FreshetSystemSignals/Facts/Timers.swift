public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// Timers that go on while the machine sleeps: in a line, for any program.
///
/// ```swift
/// for await _ in Timers.every(.seconds(3_600)).signal { … }
/// ```
public enum Timers {
    /// A timer that fires again and again, from the moment on at which somebody listens to it.
    ///
    /// - Parameters:
    ///   - period: from one firing to the next; at least ``RepeatingTimer/shortestPeriod``.
    ///   - loop: where it is waited; nil: on the library's own thread.
    public static func every(_ period: Duration, on loop: EventLoop? = nil) -> RepeatingTimer {
        RepeatingTimer(every: period, in: SourceHost(loop))
    }
}

/// A timer that fires at multiples of its period, counted from when somebody began to listen (``Timers``).
///
/// It is a description, and costs nothing. It runs while somebody iterates `changes` or is subscribed to `signal`,
/// once for all who listen to this value or a copy of it; when nobody does any more it ends, and begins anew with the
/// next. What became due while the machine slept fires once, at resume, and the firings keep their rhythm. See
/// <doc:Facts> for what it has in common with others.
public struct RepeatingTimer: Sendable {
    /// A shorter one would be a loop, not a timer.
    public static let shortestPeriod: Duration = .milliseconds(1)

    /// From one firing to the next.
    public let period: Duration
    private let place: SourceHost
    private let shared = Shared<Ticker>()
    private let makeClock: @Sendable (SystemSources) -> any AlarmClock

    init(
        every period: Duration, in place: SourceHost,
        clock: @escaping @Sendable (SystemSources) -> any AlarmClock = { $0.loop }
    ) {
        self.period = max(period, Self.shortestPeriod)
        self.place = place
        makeClock = clock
    }

    /// The present fact first, then each change of it; a slow reader gets the newest.
    public var changes: some AsyncSequence<TimerFact, Never> & Sendable {
        place.facts { [self] sources in
            let ticker = ticker(sources)
            return (ticker.current, ticker)
        } otherwise: { reason in
            TimerFact(obstacle: reason)
        }
    }

    /// The period is over: `timer`.
    public var signal: Signal {
        place.signal { [self] sources in
            let ticker = ticker(sources)
            return (ticker.signal, ticker)
        }
    }

    private func ticker(_ sources: SystemSources) -> Ticker {
        shared.get { Ticker(makeClock(sources), every: period) }
    }
}

/// When a timer fires next: a fact that can be asked for at any time.
public struct TimerFact: Hashable, Sendable, CustomStringConvertible {
    /// When it fires next, by the boot clock; nil: it does not run.
    public var next: ContinuousClock.Instant?
    /// When it fired last; nil: not yet.
    public var firedAt: ContinuousClock.Instant?
    /// Why it does not run, and what helps: a sentence for people. Nil: it runs.
    public var obstacle: String?

    /// Makes a fact by hand: for tests of what reads facts.
    public init(
        next: ContinuousClock.Instant? = nil, firedAt: ContinuousClock.Instant? = nil, obstacle: String? = nil
    ) {
        self.next = next
        self.firedAt = firedAt
        self.obstacle = obstacle
    }

    /// For people: `running`, or why it is not.
    public var description: String { obstacle ?? "running" }
}

/// A timer that runs.
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

    /// On the clock's thread.
    private func expire() {
        let now = clock.now
        guard let due = current.value.next, due <= now else { return }
        // The first multiple that is not over: what was missed is one firing.
        let next = due + period * (Int((now - due) / period) + 1)
        current.value = TimerFact(next: next, firedAt: now)
        alarm.withLock { $0 }?.arm(at: next)
        source.fire()
    }
}
