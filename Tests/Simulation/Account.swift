import FreshetModel
import FreshetPipelines
import FreshetSignals

/// The signals that a pipeline has received and no run has answered yet: firings by signal.
struct PendingSignals: Hashable, CustomStringConvertible {
    private(set) var counts: [String: Int] = [:]

    var isEmpty: Bool { counts.isEmpty }
    var hasRequest: Bool { counts.keys.contains { SignalKind(signal: $0) == .request } }

    init() {}

    init(_ causes: [RunCause]) {
        for cause in causes { add(cause.signal, cause.count) }
    }

    mutating func add(_ signal: String, _ count: Int) { counts[signal, default: 0] += count }

    mutating func merge(_ other: PendingSignals) {
        for (signal, count) in other.counts { add(signal, count) }
    }

    mutating func remove(_ signal: String, _ count: Int) {
        guard let known = counts[signal] else { return }
        counts[signal] = known > count ? known - count : nil
    }

    mutating func removeEnvironment() {
        counts = counts.filter { SignalKind(signal: $0.key) == .request }
    }

    var description: String {
        counts.sorted { $0.key < $1.key }.map { "\($0.key) × \($0.value)" }.joined(separator: ", ")
    }
}

/// The runs that a burst has cost, and may cost: flapping for a time D costs at most 1 + ⌈D ÷ at-most⌉ runs.
struct BurstCost {
    private var quiet = Duration.zero
    private var atMost = Duration.zero
    /// Some signals are held for a while before they reach the debouncer: no prediction is possible.
    private var hasSplay = false
    private var first: BootInstant?
    private var last: BootInstant?
    private var runs = 0
    /// Runs for other reasons: earlier requests, and interrupted runs.
    private var others = 0

    /// Other debounce settings, also in the middle of a burst.
    mutating func configured(_ refresh: RefreshPolicy, splay: Duration) {
        hasSplay = splay > .zero
        guard quiet != refresh.quiet || atMost != refresh.atMost else { return }
        (quiet, atMost) = (refresh.quiet, refresh.atMost)
        // The held signals are delivered too.
        (first, last) = (nil, nil)
        others = 2
    }

    /// A signal comes.
    /// - Parameter allowsAnother: something else may start one run meanwhile.
    mutating func rises(at now: BootInstant, allowsAnother: Bool) {
        if !continues(at: now) {
            others = (allowsAnother ? 1 : 0) + (last == nil ? others : 0)
            first = now
            runs = 0
        }
        last = now
    }

    /// Whether a signal that comes now belongs to the earlier burst.
    func continues(at now: BootInstant) -> Bool {
        last.map { now < $0.advanced(by: quiet) } ?? false
    }

    /// One more run may start for another reason than a burst.
    mutating func allow() { others += 1 }

    /// A run starts for received signals. Returns the highest allowed number of runs, if there are more.
    mutating func ran(at now: BootInstant) -> (runs: Int, bound: Int)? {
        guard let first, !hasSplay else { return nil }
        runs += 1
        let bound = 1 + Int((first.duration(to: now) / atMost).rounded(.up)) + others
        return runs > bound ? (runs, bound) : nil
    }
}

/// The known state of one pipeline.
struct Account {
    var refresh = RefreshPolicy()
    var needsNetwork = false
    var url: String?
    var running: UInt64?
    var lastRun: UInt64 = 0
    var lastStart: BootInstant?
    var startBefore: BootInstant?
    var lastAttemptAnyway: BootInstant?
    /// The last check of this life with the active configuration that succeeded or rejected its content.
    var lastCheck: BootInstant?
    /// Whether that check rejected its content.
    var wasRejected = false
    /// The number of the current wait for other content.
    private var waits = 0
    /// The end of that wait.
    private var waitEnds: BootInstant?
    var retryAfter: BootInstant?
    /// The same time by the wall clock, as it is stored: microseconds since 1970.
    var retryAfterWall: WallTime?
    /// Whether it counts by the wall clock, since it is from before the daemon's start.
    var isRetryAfterRemembered = false
    var isHeld = false
    /// A person's request has joined the run in progress. If another run replaces that one, the request is one for the
    /// other run, although it is not one of its causes.
    private var hasJoinedRequest = false
    /// Received since the last run started.
    var received = PendingSignals()
    /// Received before that, if the run has not answered it.
    var carried = PendingSignals()
    var burst = BurstCost()
    /// Fired just now: skipped signals are not part of a burst.
    private var unhandled: [(signal: String, at: BootInstant, allowsAnother: Bool)] = []
    var published: UInt64 = 0
    var starts: [Double] = []
    var outcomes: [RunOutcome] = []
    var counted = 0
    var causes: [String] = []
    /// Requests for further pages without an answer, and when they came.
    var pageRequests: [UInt64: BootInstant] = [:]
    /// What readers saw when the run for the page began.
    var copyBefore: String?
    /// The number of runs for further pages.
    var pageRuns = 0
    /// When the last check was, by the status and the disk at the last observation.
    var seenCheck: (shown: WallTime?, kept: WallTime?)?
    /// An event since then may change it.
    var mayHaveBeenChecked = true

    var pending: PendingSignals {
        var pending = carried
        pending.merge(received)
        return pending
    }

    /// Its runner or the whole daemon has ended: state that was only in memory is lost.
    mutating func restart() {
        running = nil
        mayHaveBeenChecked = true
        lastStart = nil
        startBefore = nil
        lastAttemptAnyway = nil
        forgetChecks()
        isHeld = false
        hasJoinedRequest = false
        received = PendingSignals()
        carried = PendingSignals()
        burst = BurstCost()
        unhandled = []
    }

    /// The known content of the origin says nothing about later requests.
    mutating func forgetChecks() {
        lastCheck = nil
        (wasRejected, waits, waitEnds) = (false, 0, nil)
    }

    mutating func configured(_ definition: PipelineDefinition, splay: Duration) {
        mayHaveBeenChecked = true
        refresh = definition.refresh
        needsNetwork = definition.needsNetwork
        if case .http(let source) = definition.source { url = source.url }
        burst.configured(refresh, splay: splay)
    }

    mutating func fired(_ signal: String, times: Int, at now: BootInstant) {
        if signal != SignalName.operation { unhandled.append((signal, now, !pending.isEmpty || running != nil)) }
        received.add(signal, times)
    }

    /// The network is back, and the waiting requests go to the debouncer.
    mutating func released(at now: BootInstant) {
        guard needsNetwork, !pending.isEmpty else { return }
        // The debouncer may have received these signals already. Then it receives nothing now, and a burst in progress
        // ends when it would have ended anyway. So the burst is not prolonged, and one more run is allowed.
        if !burst.continues(at: now) { burst.rises(at: now, allowsAnother: true) }
        burst.allow()
    }

    /// Takes an event of the engine; returns what is wrong with it, and the URL if it is a success.
    mutating func received(
        _ event: EngineEvent, at now: BootInstant, _ wallNow: WallTime, _ second: Double,
        _ environment: Witness.HostEnvironment, copy: String?
    ) -> (errors: [String], url: String?) {
        switch event {
        case .runStarted(let order) where order.reason.isLoadMore:
            return (startedMore(order, at: now, environment, copy: copy), nil)
        case .runStarted(let order): return (started(order, at: now, second: second, environment), nil)
        case .runEnded(let summary, _):
            let isSuccess = summary.outcome == .changed || summary.outcome == .unchanged
            let errors =
                summary.reason.isLoadMore
                ? endedMore(summary, at: now, wallNow: wallNow) : ended(summary, at: now, wallNow: wallNow)
            return (errors, isSuccess ? url : nil)
        case .received(let cause) where cause.signal == SignalName.timer:
            return (timerFired(cause, at: now, environment), nil)
        case .skipped(let causes, _):
            skipped(causes)
            return ([], nil)
        case .ignored(let causes, let run):
            skipped(causes)
            return (ignoredErrors(during: run), nil)
        case .joined(let cause, let run):
            received.remove(cause.signal, cause.count)
            if cause.signal == SignalName.operation { hasJoinedRequest = true }
            return (ignoredErrors(during: run), nil)
        default: return ([], nil)
        }
    }

    /// A planned check is due.
    mutating func timerFired(
        _ cause: RunCause, at now: BootInstant, _ environment: Witness.HostEnvironment
    ) -> [String] {
        var errors: [String] = []
        if environment.isUnreported { errors.append("a timer fires before the wake is reported") }
        if let wait = waitByTheClock, let lastCheck, now < lastCheck.advanced(by: wait) {
            errors.append("a check by the clock comes before it is due")
        }
        fired(SignalName.timer, times: cause.count, at: now)
        return errors
    }

    /// The time from a check to the next planned one: after rejected content it is a minute, doubled with each wait.
    private var waitByTheClock: Duration? {
        guard let every = refresh.every, wasRejected else { return refresh.every }
        return min(every, max(refresh.retry.from, .seconds(60)) * (1 << min(waits - 1, 20)))
    }

    private mutating func recordRejection(_ summary: RunSummary, at now: BootInstant) {
        lastCheck = now
        wasRejected = true
        // An early check does not make the wait longer. After a step of the wall clock the timer's check is early, too.
        let isEarly = waitEnds.map { summary.started < $0 } ?? false
        if waits == 0 || (!isEarly && summary.causes.contains { $0.signal == SignalName.timer }) { waits += 1 }
        waitEnds = waitByTheClock.map(now.advanced(by:))
    }

    /// All fired signals have been received by now.
    mutating func handledAll() {
        for rise in unhandled { burst.rises(at: rise.at, allowsAnother: rise.allowsAnother) }
        unhandled = []
    }

    /// Signals may be ignored only during a run, and only if that is configured.
    private func ignoredErrors(during run: UInt64) -> [String] {
        running == run && refresh.whenRunning == .ignore ? [] : ["signals are ignored without a reason"]
    }

    mutating func skipped(_ causes: [RunCause]) {
        unhandled.removeAll { rise in causes.contains { $0.signal == rise.signal } }
        for cause in causes { received.remove(cause.signal, cause.count) }
    }

    mutating func started(
        _ order: RunOrder, at now: BootInstant, second: Double, _ environment: Witness.HostEnvironment
    ) -> [String] {
        handledAll()
        mayHaveBeenChecked = true
        var errors = beginning(order, at: now, environment)
        let isOperators = hasJoinedRequest || order.causes.contains { $0.signal == SignalName.operation }
        if !isOperators, let lastStart, now < lastStart.advanced(by: refresh.minInterval) {
            errors.append("run \(order.run) starts before min-interval is over")
        }
        errors += needsNoNetwork(order, at: now, environment)
        if !isOperators, environment.isMetered, refresh.whenMetered == .wait {
            errors.append("run \(order.run) starts on a metered connection")
        }
        carried.merge(received)
        received = PendingSignals()
        if PendingSignals(order.causes) != carried {
            errors.append(
                "run \(order.run) has the causes \(PendingSignals(order.causes)), but received are \(carried)")
        }
        if order.reason == .signals, !isOperators, let excess = burst.ran(at: now) {
            errors.append("\(excess.runs) runs for a burst that may cost \(excess.bound)")
        }
        running = order.run
        lastRun = order.run
        startBefore = lastStart
        lastStart = now
        starts.append(second)
        causes.append(order.causes.summary)
        return errors
    }

    /// The rules for every run.
    func beginning(
        _ order: RunOrder, at now: BootInstant, _ environment: Witness.HostEnvironment
    ) -> [String] {
        var errors: [String] = []
        if let running { errors.append("run \(order.run) starts while \(running) is in progress") }
        if order.run <= lastRun { errors.append("run \(order.run) starts after run \(lastRun)") }
        if order.causes.isEmpty { errors.append("run \(order.run) has no cause") }
        if order.started != now { errors.append("run \(order.run) is dated otherwise") }
        if environment.goesToSleep { errors.append("run \(order.run) starts before the sleep") }
        if environment.isUnreported { errors.append("run \(order.run) starts before the wake is reported") }
        if isHeld { errors.append("run \(order.run) starts while it is held") }
        // Stored times are rounded to microseconds.
        if order.reason != .forced, let retryAfter, now < retryAfter.advanced(by: .microseconds(-1)) {
            errors.append("run \(order.run) starts in spite of Retry-After")
        }
        return errors
    }

    /// A run waits while the host is offline; an overdue check is attempted from time to time.
    private mutating func needsNoNetwork(
        _ order: RunOrder, at now: BootInstant, _ environment: Witness.HostEnvironment
    ) -> [String] {
        guard needsNetwork, order.reason != .forced, let awaySince = environment.awaySince else { return [] }
        guard order.reason == .noRoute else { return ["run \(order.run) starts while the network is away"] }
        let last = max(lastAttemptAnyway ?? awaySince, awaySince)
        lastAttemptAnyway = now
        guard now < last.advanced(by: .seconds(900)) else { return [] }
        return ["run \(order.run) is attempted too soon while the network is away"]
    }

    /// State from before the daemon's start counts by the current wall clock.
    mutating func recallRetryAfter(at now: BootInstant, _ wallNow: WallTime) {
        guard isRetryAfterRemembered, let retryAfterWall else { return }
        let left = wallNow.duration(to: retryAfterWall)
        retryAfter = now.advanced(by: min(left, .seconds(7 * 24 * 3600)))
    }

    mutating func ended(_ summary: RunSummary, at now: BootInstant, wallNow: WallTime) -> [String] {
        var errors: [String] = []
        if running != summary.run { errors.append("run \(summary.run) ends and was not in progress") }
        running = nil
        outcomes.append(summary.outcome)
        if summary.outcome != .superseded { hasJoinedRequest = false }
        switch summary.outcome {
        case .changed, .unchanged:
            retryAfter = nil
            retryAfterWall = nil
            lastCheck = now
            (wasRejected, waits, waitEnds) = (false, 0, nil)
            answered()
        case .failed where summary.failure?.isAnswer == true && refresh.every != nil:
            // The origin's content was rejected: another run would fetch the same.
            counted += 1
            recordRejection(summary, at: now)
            answered()
        case .failed:
            if summary.counts {
                counted += 1
            } else {
                // The run did not reach the origin, so `min-interval` does not apply.
                lastStart = startBefore
            }
            // After another failure, rejected content does not decide any more when the next check is due.
            if wasRejected { lastCheck = nil }
            recordRetryAfter(summary, at: now, wallNow: wallNow)
        case .superseded:
            burst.rises(at: now, allowsAnother: true)
            burst.allow()
        case .cancelled: break
        }
        return errors
    }

    private mutating func answered() {
        carried = PendingSignals()
        // The environment signals that fired meanwhile are answered: the run's result is as new.
        received.removeEnvironment()
    }

    /// The origin sent `Retry-After`.
    mutating func recordRetryAfter(_ summary: RunSummary, at now: BootInstant, wallNow: WallTime) {
        guard let wait = summary.failure?.retryAfter, wait > .zero else { return }
        retryAfter = now.advanced(by: wait)
        retryAfterWall = wallNow.advanced(by: .seconds(wait.components.seconds))
        isRetryAfterRemembered = false
    }
}

extension RunFailure {
    /// A check rejected the origin's content, and will reject it the next time.
    fileprivate var isAnswer: Bool { rejection == .lasting || rejection == .passing }
}
