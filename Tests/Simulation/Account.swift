import FreshetPipelines
import FreshetSignals

/// What a pipeline has heard and not been answered: firings by signal.
struct Owed: Hashable, CustomStringConvertible {
    private(set) var counts: [String: Int] = [:]

    var isEmpty: Bool { counts.isEmpty }
    var hasDemand: Bool { counts.keys.contains { SignalKind(signal: $0) == .demand } }

    init() {}

    init(_ causes: [RunCause]) {
        for cause in causes { add(cause.signal, cause.count) }
    }

    mutating func add(_ signal: String, _ count: Int) { counts[signal, default: 0] += count }

    mutating func merge(_ other: Owed) {
        for (signal, count) in other.counts { add(signal, count) }
    }

    mutating func remove(_ signal: String, _ count: Int) {
        guard let known = counts[signal] else { return }
        counts[signal] = known > count ? known - count : nil
    }

    mutating func removeEnvironment() {
        counts = counts.filter { SignalKind(signal: $0.key) == .demand }
    }

    var description: String {
        counts.sorted { $0.key < $1.key }.map { "\($0.key) × \($0.value)" }.joined(separator: ", ")
    }
}

/// What a storm has cost, and may cost: flapping for a time D costs at most 1 + ⌈D ÷ at-most⌉ runs.
struct StormCost {
    private var quiet = Duration.zero
    private var atMost = Duration.zero
    /// Some of what comes is held back for a while before it makes a storm: nothing can be said.
    private var hasSplay = false
    private var first: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?
    private var runs = 0
    /// Runs that other things ask for: what was wanted before, and what was cut short.
    private var others = 0

    /// Another pace, also in mid-storm.
    mutating func configured(_ refresh: RefreshPolicy, splay: Duration) {
        hasSplay = splay > .zero
        guard quiet != refresh.quiet || atMost != refresh.atMost else { return }
        (quiet, atMost) = (refresh.quiet, refresh.atMost)
        // What was held goes out as well.
        (first, last) = (nil, nil)
        others = 2
    }

    /// Something comes.
    ///
    /// - Parameter owes: something else may start meanwhile, once.
    mutating func rises(at now: ContinuousClock.Instant, owes: Bool) {
        if !goesOn(at: now) {
            others = (owes ? 1 : 0) + (last == nil ? others : 0)
            first = now
            runs = 0
        }
        last = now
    }

    /// Whether what comes now belongs to the storm that there was.
    func goesOn(at now: ContinuousClock.Instant) -> Bool {
        last.map { now < $0.advanced(by: quiet) } ?? false
    }

    /// One more run is due to something else than a storm.
    mutating func allow() { others += 1 }

    /// A run starts for what was heard. Returns the most that there may be, if there are more.
    mutating func ran(at now: ContinuousClock.Instant) -> (runs: Int, bound: Int)? {
        guard let first, !hasSplay else { return nil }
        runs += 1
        let bound = 1 + Int((first.duration(to: now) / atMost).rounded(.up)) + others
        return runs > bound ? (runs, bound) : nil
    }
}

/// What is known of one pipeline.
struct Account {
    var refresh = RefreshPolicy()
    var needsNetwork = false
    var url: String?
    var running: UInt64?
    var lastRun: UInt64 = 0
    var lastStart: ContinuousClock.Instant?
    var startBefore: ContinuousClock.Instant?
    var lastAttemptAnyway: ContinuousClock.Instant?
    /// The last check of this life, of what is configured now, that succeeded or found something that is refused.
    var lastCheck: ContinuousClock.Instant?
    /// What that check found was refused.
    var wasRefused = false
    /// Which wait for another content it is.
    private var waits = 0
    var retryAfter: ContinuousClock.Instant?
    /// The same by the wall clock, as it is remembered: microseconds since 1970.
    var retryAfterWall: Int64?
    /// It counts by the wall clock, since it is known from before the daemon's start.
    var isRetryAfterRemembered = false
    var isHeld = false
    /// Heard since the last run started.
    var heard = Owed()
    /// Heard before that, if the run has not answered it.
    var carried = Owed()
    var storm = StormCost()
    /// Fired just now: what is suppressed makes no storm.
    private var unheard: [(signal: String, at: ContinuousClock.Instant, owes: Bool)] = []
    var offered: UInt64 = 0
    var starts: [Double] = []
    var outcomes: [RunOutcome] = []
    var counted = 0
    var causes: [String] = []
    /// Wishes for further pages that were not answered yet, and when they came.
    var wishes: [UInt64: ContinuousClock.Instant] = [:]
    /// What readers saw when the run that loads a page began.
    var copyBefore: String?
    /// How many runs there were for further pages.
    var pageRuns = 0
    /// When the last check was, by what was shown and what was on the disk at the last look.
    var seenCheck: (shown: Int64?, kept: Int64?)?
    /// Something happened since that may change it.
    var mayHaveBeenChecked = true

    var owed: Owed {
        var owed = carried
        owed.merge(heard)
        return owed
    }

    /// Its runner is gone, or the whole daemon: what was only in memory is forgotten.
    mutating func restart() {
        running = nil
        mayHaveBeenChecked = true
        lastStart = nil
        startBefore = nil
        lastAttemptAnyway = nil
        forgetChecks()
        isHeld = false
        heard = Owed()
        carried = Owed()
        storm = StormCost()
        unheard = []
    }

    /// What is known of the origin's content says nothing of what is asked for from now on.
    mutating func forgetChecks() {
        lastCheck = nil
        (wasRefused, waits) = (false, 0)
    }

    mutating func configured(_ definition: PipelineDefinition, splay: Duration) {
        mayHaveBeenChecked = true
        refresh = definition.refresh
        needsNetwork = definition.needsNetwork
        if case .http(let source) = definition.source { url = source.url }
        storm.configured(refresh, splay: splay)
    }

    mutating func fired(_ signal: String, times: Int, at now: ContinuousClock.Instant) {
        if signal != SignalName.operation { unheard.append((signal, now, !owed.isEmpty || running != nil)) }
        heard.add(signal, times)
    }

    /// The network is back, and what waited for it goes to the gate.
    mutating func released(at now: ContinuousClock.Instant) {
        guard needsNetwork, !owed.isEmpty else { return }
        // The gate may have had these signals already. Then it receives nothing now, and a storm in progress ends when it would
        // have ended anyway. So the storm is not prolonged, and one more run is allowed.
        if !storm.goesOn(at: now) { storm.rises(at: now, owes: true) }
        storm.allow()
    }

    /// Takes what the engine tells; returns what is wrong with it, and the URL if it is a success.
    mutating func heard(
        _ event: EngineEvent, at now: ContinuousClock.Instant, _ wallNow: Int64, _ second: Double,
        _ surroundings: Witness.HostEnvironment, copy: String?
    ) -> (faults: [String], url: String?) {
        switch event {
        case .runStarted(let order) where order.reason.isLoadMore:
            return (startedMore(order, at: now, surroundings, copy: copy), nil)
        case .runStarted(let order): return (started(order, at: now, second: second, surroundings), nil)
        case .runEnded(let summary, _):
            let isSuccess = summary.outcome == .changed || summary.outcome == .unchanged
            let faults =
                summary.reason.isLoadMore
                ? endedMore(summary, at: now, wallNow: wallNow) : ended(summary, at: now, wallNow: wallNow)
            return (faults, isSuccess ? url : nil)
        case .heard(let cause) where cause.signal == SignalName.timer: return (rang(cause, at: now, surroundings), nil)
        case .suppressed(let causes, _):
            suppressed(causes)
            return ([], nil)
        default: return ([], nil)
        }
    }

    /// A check by the clock is due.
    mutating func rang(
        _ cause: RunCause, at now: ContinuousClock.Instant, _ surroundings: Witness.HostEnvironment
    ) -> [String] {
        var faults: [String] = []
        if surroundings.isUntold { faults.append("a timer rings before the wake is told") }
        if let wait = waitByTheClock, let lastCheck, now < lastCheck.advanced(by: wait) {
            faults.append("a check by the clock comes before it is due")
        }
        fired(SignalName.timer, times: cause.count, at: now)
        return faults
    }

    /// From a check to the next one by the clock; after content that is refused that is a minute, and each time that it
    /// was waited for twice as long.
    private var waitByTheClock: Duration? {
        guard let every = refresh.every, wasRefused else { return refresh.every }
        return min(every, max(refresh.retry.from, .seconds(60)) * (1 << min(waits - 1, 20)))
    }

    private mutating func noteRefusal(_ summary: RunSummary, at now: ContinuousClock.Instant) {
        lastCheck = now
        wasRefused = true
        // One that came before its time makes the wait no longer.
        if waits == 0 || summary.causes.contains(where: { $0.signal == SignalName.timer }) { waits += 1 }
    }

    /// All that fired has been heard by now.
    mutating func heardAll() {
        for rise in unheard { storm.rises(at: rise.at, owes: rise.owes) }
        unheard = []
    }

    mutating func suppressed(_ causes: [RunCause]) {
        unheard.removeAll { rise in causes.contains { $0.signal == rise.signal } }
        for cause in causes { heard.remove(cause.signal, cause.count) }
    }

    mutating func started(
        _ order: RunOrder, at now: ContinuousClock.Instant, second: Double, _ surroundings: Witness.HostEnvironment
    ) -> [String] {
        heardAll()
        mayHaveBeenChecked = true
        var faults = beginning(order, at: now, surroundings)
        let isOperators = order.causes.contains { $0.signal == SignalName.operation }
        if !isOperators, let lastStart, now < lastStart.advanced(by: refresh.minInterval) {
            faults.append("run \(order.run) starts before min-interval is over")
        }
        faults += needsNoNetwork(order, at: now, surroundings)
        carried.merge(heard)
        heard = Owed()
        if Owed(order.causes) != carried {
            faults.append("run \(order.run) has the causes \(Owed(order.causes)), and what was heard is \(carried)")
        }
        if order.reason == .signals, !isOperators, let excess = storm.ran(at: now) {
            faults.append("\(excess.runs) runs for a storm that may cost \(excess.bound)")
        }
        running = order.run
        lastRun = order.run
        startBefore = lastStart
        lastStart = now
        starts.append(second)
        causes.append(order.causes.summary)
        return faults
    }

    /// What holds for every run.
    func beginning(
        _ order: RunOrder, at now: ContinuousClock.Instant, _ surroundings: Witness.HostEnvironment
    ) -> [String] {
        var faults: [String] = []
        if let running { faults.append("run \(order.run) starts while \(running) is under way") }
        if order.run <= lastRun { faults.append("run \(order.run) starts after run \(lastRun)") }
        if order.causes.isEmpty { faults.append("run \(order.run) has no cause") }
        if order.started != now { faults.append("run \(order.run) is dated otherwise") }
        if surroundings.goesToSleep { faults.append("run \(order.run) starts before the sleep") }
        if surroundings.isUntold { faults.append("run \(order.run) starts before the wake is told") }
        if isHeld { faults.append("run \(order.run) starts while it is held") }
        // What is remembered on the disk is rounded to microseconds.
        if order.reason != .forced, let retryAfter, now < retryAfter.advanced(by: .microseconds(-1)) {
            faults.append("run \(order.run) starts although the origin wants to be left alone")
        }
        return faults
    }

    /// Offline is waited for; a check that is overdue is attempted now and then.
    private mutating func needsNoNetwork(
        _ order: RunOrder, at now: ContinuousClock.Instant, _ surroundings: Witness.HostEnvironment
    ) -> [String] {
        guard needsNetwork, order.reason != .forced, let awaySince = surroundings.awaySince else { return [] }
        guard order.reason == .routingSaysNo else { return ["run \(order.run) starts while the network is away"] }
        let last = max(lastAttemptAnyway ?? awaySince, awaySince)
        lastAttemptAnyway = now
        guard now < last.advanced(by: .seconds(900)) else { return [] }
        return ["run \(order.run) is attempted too soon while the network is away"]
    }

    /// What is known from before the daemon's start counts by the wall clock, as it is now.
    mutating func recallRetryAfter(at now: ContinuousClock.Instant, _ wallNow: Int64) {
        guard isRetryAfterRemembered, let retryAfterWall else { return }
        let left = Duration.microseconds(retryAfterWall - wallNow)
        retryAfter = now.advanced(by: min(left, .seconds(7 * 24 * 3600)))
    }

    mutating func ended(_ summary: RunSummary, at now: ContinuousClock.Instant, wallNow: Int64) -> [String] {
        var faults: [String] = []
        if running != summary.run { faults.append("run \(summary.run) ends and was not under way") }
        running = nil
        outcomes.append(summary.outcome)
        switch summary.outcome {
        case .changed, .unchanged:
            retryAfter = nil
            retryAfterWall = nil
            lastCheck = now
            (wasRefused, waits) = (false, 0)
            answered()
        case .failed where summary.failure?.isAnswer == true && refresh.every != nil:
            // What the origin has was refused: no other run would bring another.
            counted += 1
            noteRefusal(summary, at: now)
            answered()
        case .failed:
            if summary.counts {
                counted += 1
            } else {
                // It reached no origin that would have to be spared.
                lastStart = startBefore
            }
            noteRetryAfter(summary, at: now, wallNow: wallNow)
        case .superseded:
            storm.rises(at: now, owes: true)
            storm.allow()
        case .cancelled: break
        }
        return faults
    }

    private mutating func answered() {
        carried = Owed()
        // What the surroundings said meanwhile: what the run brought is as new.
        heard.removeEnvironment()
    }

    /// The origin wants to be left alone.
    mutating func noteRetryAfter(_ summary: RunSummary, at now: ContinuousClock.Instant, wallNow: Int64) {
        guard let wait = summary.failure?.retryAfter, wait > .zero else { return }
        retryAfter = now.advanced(by: wait)
        retryAfterWall = wallNow + wait.components.seconds * 1_000_000
        isRetryAfterRemembered = false
    }
}

extension RunFailure {
    /// A check refused what the origin has, and will do so the next time.
    fileprivate var isAnswer: Bool { refusal == .lasting || refusal == .passing }
}
