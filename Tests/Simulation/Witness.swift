import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import WorldTestSupport

/// Sees all that a machine's pipelines do, and notes what must never be:
///
/// - two runs of a pipeline at once, a run without a cause, a run's number twice, also across restarts;
/// - a start while the origin wants to be left alone, unless it is forced, or sooner than `min-interval` allows;
/// - a start while the machine is about to sleep;
/// - a wake that neither a run nor a reason follows, a run after it without it, or another for it when it was answered;
/// - a copy that is on the disk and not offered, and one on the disk that no check should have let through;
/// - a demand that no successful run followed which started after it.
final class Witness: Sendable {
    /// So many are kept: the first says most.
    static let limit = 20

    fileprivate struct Account {
        var minInterval: Duration = .zero
        var running: UInt64?
        var lastRun: UInt64 = 0
        var lastStart: ContinuousClock.Instant?
        var startBefore: ContinuousClock.Instant?
        var retryAfter: ContinuousClock.Instant?
        /// The same by the wall clock, as it is remembered: microseconds since 1970.
        var retryAfterWall: Int64?
        /// It counts by the wall clock, since it is known from before the daemon's start.
        var isRetryAfterRemembered = false
        var isHosted = false
        var hearsResume = false
        /// The last wake, which nothing has come of yet.
        var wake: ContinuousClock.Instant?
        /// When the last run that succeeded started.
        var successStart: ContinuousClock.Instant?
        /// The last run that had started when somebody demanded a newer one.
        var demand: UInt64?
        var offered: UInt64 = 0
        var starts: [Double] = []
        var outcomes: [RunOutcome] = []
        var counted = 0
        var causes: [String] = []
    }

    private struct State {
        var accounts: [String: Account] = [:]
        var faults: [String] = []
        var goesToSleep = false
    }

    private let state = Lock(State())
    private let clock: ScriptedClock
    private let disk: MemoryDisk

    init(_ place: Place, _ disk: MemoryDisk) {
        clock = place.clock
        self.disk = disk
    }

    /// What must never be and was, with its second. Empty at the end of a story that ends well.
    var faults: [String] { state.withLock { $0.faults } }
    /// The pipelines whose demands no run has followed yet.
    var unanswered: [String] { state.withLock { $0.accounts.filter { $0.value.demand != nil }.keys.sorted() } }
    /// When a pipeline's runs started, in seconds.
    func starts(of name: String) -> [Double] { state.withLock { $0.accounts[name]?.starts ?? [] } }
    func outcomes(of name: String) -> [RunOutcome] { state.withLock { $0.accounts[name]?.outcomes ?? [] } }
    /// The causes of each run, in words.
    func causes(of name: String) -> [String] { state.withLock { $0.accounts[name]?.causes ?? [] } }
    /// How many runs failed and counted as failures.
    func failures(of name: String) -> Int { state.withLock { $0.accounts[name]?.counted ?? 0 } }

    func expect(_ condition: Bool, _ fault: @autoclosure () -> String) {
        if !condition { note(fault()) }
    }

    private func note(_ fault: String) {
        let line = "at \(seconds(clock.manual.elapsed)) s: \(fault)"
        state.withLock { if $0.faults.count < Self.limit { $0.faults.append(line) } }
    }

    // MARK: What the machine does

    /// Another life of the daemon: what was only in its memory is gone.
    func booted() {
        state.withLock { state in
            state.goesToSleep = false
            for name in state.accounts.keys {
                state.accounts[name]?.isHosted = false
                state.accounts[name]?.wake = nil
                state.accounts[name]?.running = nil
                state.accounts[name]?.lastStart = nil
                state.accounts[name]?.startBefore = nil
                state.accounts[name]?.demand = nil
            }
        }
    }

    func hosts(_ definition: PipelineDefinition) {
        let (now, wallNow) = (clock.now, clock.wallNow)
        state.withLock { state in
            var account = state.accounts[definition.name, default: Account()]
            if !account.isHosted {
                account.isHosted = true
                account.isRetryAfterRemembered = true
                account.recallRetryAfter(at: now, wallNow)
            }
            account.minInterval = definition.refresh.minInterval
            account.hearsResume = definition.refresh.on.contains(.resume)
            state.accounts[definition.name] = account
        }
    }

    func goesToSleep(_ sleeps: Bool) {
        state.withLock { $0.goesToSleep = sleeps }
    }

    func woke() {
        let now = clock.now
        state.withLock { state in
            state.goesToSleep = false
            for (name, account) in state.accounts where account.isHosted && account.hearsResume {
                state.accounts[name]?.wake = now
            }
        }
    }

    func clockStepped() {
        let (now, wallNow) = (clock.now, clock.wallNow)
        state.withLock { state in
            for name in state.accounts.keys { state.accounts[name]?.recallRetryAfter(at: now, wallNow) }
        }
    }

    func dismissed(_ name: String) {
        let running = state.withLock { state in
            defer {
                state.accounts[name]?.running = nil
                state.accounts[name]?.lastStart = nil
                state.accounts[name]?.demand = nil
                state.accounts[name]?.wake = nil
                state.accounts[name]?.isHosted = false
            }
            return state.accounts[name]?.running
        }
        expect(running == nil, "\(name): run \(running ?? 0) goes on after the pipeline was removed")
    }

    /// Its source is another one, which asked for nothing.
    func changed(_ name: String) {
        state.withLock { state in
            state.accounts[name]?.retryAfter = nil
            state.accounts[name]?.retryAfterWall = nil
        }
    }

    func demanded(_ name: String) {
        state.withLock { state in
            guard var account = state.accounts[name] else { return }
            account.demand = account.lastRun
            state.accounts[name] = account
        }
    }

    // MARK: What the engine tells

    func heard(_ event: EngineEvent, of name: String) {
        let now = clock.now
        let wallNow = clock.wallNow
        let second = seconds(clock.manual.elapsed)
        let faults = state.withLock { state -> [String] in
            var account = state.accounts[name, default: Account()]
            defer { state.accounts[name] = account }
            switch event {
            case .runStarted(let order):
                let faults = account.started(order, at: now, second: second)
                return state.goesToSleep ? faults + ["run \(order.run) starts before the wake"] : faults
            case .runEnded(let summary, _): return account.ended(summary, at: now, wallNow: wallNow)
            case .suppressed(let causes, _):
                if causes.contains(where: { $0.signal == SignalName.resume }) { account.wake = nil }
                return []
            default: return []
            }
        }
        for fault in faults { note("\(name): \(fault)") }
    }

    func look(at status: PipelineStatus, of name: String) {
        let store = disk[name]
        let offered = status.generation?.number ?? 0
        if let text = store.text {
            expect(text.hasPrefix("good"), "\(name): \(text) was let through")
            expect(offered > 0, "\(name): a copy is there and not offered")
        }
        let kept = store.rememberedNow.generation?.number ?? 0
        expect(status.run != nil || offered == kept, "\(name): generation \(kept) is there, \(offered) is offered")
        let (before, demand, wake) = state.withLock { state in
            defer { state.accounts[name]?.offered = offered }
            return (state.accounts[name]?.offered ?? 0, state.accounts[name]?.demand, state.accounts[name]?.wake)
        }
        expect(offered >= before, "\(name): generation \(offered) is offered after \(before)")
        let isAtRest = status.run == nil && status.waitsFor == nil && status.activity != .held
        expect(demand == nil || !isAtRest, "\(name): a demand was forgotten")
        expect(wake == nil || !isAtRest, "\(name): a wake was forgotten")
    }
}

extension Witness.Account {
    fileprivate mutating func started(
        _ order: RunOrder, at now: ContinuousClock.Instant, second: Double
    ) -> [String] {
        var faults: [String] = []
        if let running { faults.append("run \(order.run) starts while \(running) is under way") }
        if order.run <= lastRun { faults.append("run \(order.run) starts after run \(lastRun)") }
        if order.causes.isEmpty { faults.append("run \(order.run) has no cause") }
        if order.started != now { faults.append("run \(order.run) is dated otherwise") }
        // What is remembered on the disk is rounded to microseconds.
        if order.reason != .forced, let retryAfter, now < retryAfter.advanced(by: .microseconds(-1)) {
            faults.append("run \(order.run) starts although the origin wants to be left alone")
        }
        let isOperators = order.causes.contains { $0.signal == SignalName.operation }
        if !isOperators, let lastStart, now < lastStart.advanced(by: minInterval) {
            faults.append("run \(order.run) starts before min-interval is over")
        }
        let resume = order.causes.first { $0.signal == SignalName.resume }
        if wake != nil, resume == nil { faults.append("run \(order.run) starts after a wake without it") }
        if let resume, let successStart, resume.last < successStart {
            faults.append("run \(order.run) is for a wake that was answered")
        }
        wake = nil
        running = order.run
        lastRun = order.run
        startBefore = lastStart
        lastStart = now
        starts.append(second)
        causes.append(order.causes.summary)
        return faults
    }

    /// What is known from before the daemon's start counts by the wall clock, as it is now.
    fileprivate mutating func recallRetryAfter(at now: ContinuousClock.Instant, _ wallNow: Int64) {
        guard isRetryAfterRemembered, let retryAfterWall else { return }
        let left = Duration.microseconds(retryAfterWall - wallNow)
        retryAfter = now.advanced(by: min(left, .seconds(7 * 24 * 3600)))
    }

    fileprivate mutating func ended(
        _ summary: RunSummary, at now: ContinuousClock.Instant, wallNow: Int64
    ) -> [String] {
        var faults: [String] = []
        if running != summary.run { faults.append("run \(summary.run) ends and was not under way") }
        running = nil
        outcomes.append(summary.outcome)
        switch summary.outcome {
        case .changed, .unchanged:
            retryAfter = nil
            retryAfterWall = nil
            successStart = summary.started
            // A run that was under way at the wake: what it brought is as new.
            wake = nil
            if let demand, summary.run > demand { self.demand = nil }
        case .failed:
            if summary.counts {
                counted += 1
            } else {
                // It reached no origin that would have to be spared.
                lastStart = startBefore
            }
            if let wait = summary.failure?.retryAfter, wait > .zero {
                retryAfter = now.advanced(by: wait)
                retryAfterWall = wallNow + wait.components.seconds * 1_000_000
                isRetryAfterRemembered = false
            }
        case .superseded, .cancelled: break
        }
        return faults
    }
}
