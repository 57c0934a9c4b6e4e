import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import Glibc
import WorldTestSupport

/// Sees all that a machine's pipelines do, and notes what must never be:
///
/// - two runs of a pipeline at once, a run without a cause, a run's number twice, also across restarts;
/// - a run whose causes are not exactly what was heard and not answered: a firing that was lost, counted twice, or
///   answered by a run that had started before (a demand) or by nothing (the surroundings);
/// - a firing that neither a run nor a reason follows;
/// - more runs for a storm than it may cost;
/// - a run that needs the network while that is away, unless it is forced or an overdue check is attempted anyway;
/// - a start while the origin wants to be left alone, unless it is forced, or sooner than `min-interval` allows;
/// - a start while the machine is about to sleep; whatever is done after a sleep before the wake was told; a check by
///   the clock before it is due;
/// - a wish for a further page that is not answered, or twice, or by a check; a page that nobody wants; one that is taken
///   for a check;
/// - a copy that is on the disk and not offered, one that no check should have let through, and one that is not what
///   the origin said meanwhile.
///
/// It counts for itself, from what it is told that happened; of the engine it believes nothing but when runs start and
/// end.
final class Witness: Sendable {
    /// So many are kept: the first says most.
    static let limit = 20

    private struct State {
        var accounts: [String: Account] = [:]
        var faults: [String] = []
        var surroundings = HostEnvironment()
        var lastWish: UInt64 = 0
        /// Of all that happened, for two courses to be compared.
        var trace = Trace()
    }

    /// What is so for all pipelines.
    struct HostEnvironment {
        var goesToSleep = false
        /// The machine slept, and nobody knows it yet.
        var isUntold = false
        /// Since when the network is away.
        var awaySince: ContinuousClock.Instant?
    }

    private let state = Lock(State())
    private let clock: ScriptedClock
    private let disk: MemoryDisk
    private let internet: ScriptedInternet

    init(_ place: Place, _ disk: MemoryDisk) {
        clock = place.clock
        internet = place.internet
        self.disk = disk
    }

    /// What must never be and was, with its second. Empty at the end of a story that ends well.
    var faults: [String] { state.withLock { $0.faults } }
    /// The pipelines whose demands no run has followed yet.
    var unanswered: [String] {
        state.withLock { $0.accounts.filter { $0.value.owed.hasDemand }.keys.sorted() }
    }
    /// A number that two courses share if the same happened in both.
    var trace: UInt64 { state.withLock { $0.trace.number } }
    /// When a pipeline's runs started, in seconds.
    func starts(of name: String) -> [Double] { state.withLock { $0.accounts[name]?.starts ?? [] } }
    func outcomes(of name: String) -> [RunOutcome] { state.withLock { $0.accounts[name]?.outcomes ?? [] } }
    /// The causes of each run, in words.
    func causes(of name: String) -> [String] { state.withLock { $0.accounts[name]?.causes ?? [] } }
    /// How many runs failed and counted as failures.
    func failures(of name: String) -> Int { state.withLock { $0.accounts[name]?.counted ?? 0 } }
    /// How many runs there were of all pipelines.
    var runs: Int { state.withLock { $0.accounts.values.reduce(0) { $0 + $1.starts.count } } }
    /// How many loaded a further page.
    var pageRuns: Int { state.withLock { $0.accounts.values.reduce(0) { $0 + $1.pageRuns } } }
    /// The pipelines with wishes for further pages that nobody answered yet.
    var unansweredWishes: [String] {
        state.withLock { $0.accounts.filter { !$0.value.wishes.isEmpty }.keys.sorted() }
    }

    func expect(_ condition: Bool, _ fault: @autoclosure () -> String) {
        if !condition { note(fault()) }
    }

    private func note(_ fault: String) {
        let line = "at \(seconds(clock.manual.elapsed)) s: \(fault)"
        tell("FAULT \(fault)")
        state.withLock { if $0.faults.count < Self.limit { $0.faults.append(line) } }
    }

    /// What happened, for who looks for a fault: it is printed if `FRESHET_STORY` is set.
    func tell(_ news: @autoclosure () -> String) {
        if Self.isTold { print("\(seconds(clock.manual.elapsed)) \(news())") }
    }

    private static let isTold = getenv("FRESHET_STORY") != nil

    private func change(_ name: String, _ body: (inout Account) -> Void) {
        state.withLock { state in
            // In place: a copy would copy all that is noted of it.
            guard let index = state.accounts.index(forKey: name) else { return }
            body(&state.accounts.values[index])
        }
    }

    // MARK: What the machine does

    /// Another life of the daemon: what was only in its memory is gone.
    func booted() {
        state.withLock { state in
            state.surroundings = HostEnvironment()
            for name in state.accounts.keys { state.accounts[name]?.restart() }
        }
    }

    /// What was not on the disk yet never was.
    func crashed() {
        state.withLock { state in
            for name in state.accounts.keys {
                let remembered = disk[name].rememberedNow
                state.accounts[name]?.lastRun = remembered.lastRun
                state.accounts[name]?.retryAfterWall = remembered.retryAfter
                // What is on the disk is recalled at the next start.
                state.accounts[name]?.retryAfter = nil
            }
        }
    }

    func hosts(_ definition: PipelineDefinition, splay: Duration) {
        let (now, wallNow) = (clock.now, clock.wallNow)
        state.withLock { state in
            var account = state.accounts[definition.name, default: Account()]
            account.isRetryAfterRemembered = true
            account.recallRetryAfter(at: now, wallNow)
            account.configured(definition, splay: splay)
            state.accounts[definition.name] = account
        }
    }

    /// Another configuration holds.
    ///
    /// - Parameter sameProduct: if not, its source is another one, which asked for nothing.
    func changes(_ definition: PipelineDefinition, sameProduct: Bool, splay: Duration) {
        let now = clock.now
        change(definition.name) { account in
            account.configured(definition, splay: splay)
            guard !sameProduct else { return }
            account.retryAfter = nil
            account.retryAfterWall = nil
            account.forgetChecks()
            // What failed goes through the gate once more.
            account.storm.rises(at: now, owes: true)
        }
    }

    func dismissed(_ name: String) {
        let running = state.withLock { $0.accounts[name]?.running }
        change(name) { $0.restart() }
        expect(running == nil, "\(name): run \(running ?? 0) goes on after the pipeline was removed")
    }

    func holds(_ name: String, _ held: Bool) { change(name) { $0.isHeld = held } }

    /// Whether the operator's request would be refused.
    func isRefused(_ name: String) -> Bool {
        let now = clock.now
        return state.withLock { state in
            guard let account = state.accounts[name] else { return true }
            return account.isHeld || (account.retryAfter.map { $0 > now } ?? false)
        }
    }

    func network(isUp: Bool) {
        let now = clock.now
        state.withLock { state in
            guard isUp == (state.surroundings.awaySince != nil) else { return }
            state.surroundings.awaySince = isUp ? nil : now
            guard isUp else { return }
            for name in state.accounts.keys { state.accounts[name]?.released(at: now) }
        }
    }

    func goesToSleep(_ sleeps: Bool) { state.withLock { $0.surroundings.goesToSleep = sleeps } }
    func slept() { state.withLock { $0.surroundings.isUntold = true } }
    func woke() {
        state.withLock { state in
            state.surroundings.goesToSleep = false
            state.surroundings.isUntold = false
        }
    }

    func clockStepped() {
        let (now, wallNow) = (clock.now, clock.wallNow)
        state.withLock { state in
            for name in state.accounts.keys {
                state.accounts[name]?.recallRetryAfter(at: now, wallNow)
                state.accounts[name]?.mayHaveBeenChecked = true
                // What was refused may have been so for the time.
                if state.accounts[name]?.wasRefused == true { state.accounts[name]?.lastCheck = nil }
                // What failed for a certificate's dates is tried at once.
                state.accounts[name]?.storm.allow()
            }
        }
    }

    /// A signal fires that this pipeline listens to.
    func fired(_ signal: String, at name: String, times: Int = 1) {
        let now = clock.now
        tell("\(name): \(signal) × \(times)")
        change(name) { $0.fired(signal, times: times, at: now) }
    }

    // MARK: What the engine tells

    func heard(_ event: EngineEvent, of name: String) {
        let now = clock.now
        let wallNow = clock.wallNow
        let second = seconds(clock.manual.elapsed)
        tell("\(name): \(event)")
        let copy = disk[name].text
        let (faults, url) = state.withLock { state -> ([String], String?) in
            state.trace.add(name, event, second)
            let surroundings = state.surroundings
            return state.accounts[name, default: Account()].heard(
                event, at: now, wallNow, second, surroundings, copy: copy)
        }
        for fault in faults { note("\(name): \(fault)") }
        // What a run that succeeded asked.
        guard let url, case .runEnded(let summary, _) = event else { return }
        let before = state.withLock { $0.accounts[name]?.copyBefore }
        expectPages(of: name, at: url, summary, before: before, kept: copy ?? "")
    }

    /// What an origin said last, without where the next page is.
    func saidItems(at url: String, since instant: ContinuousClock.Instant) -> [String] {
        internet[url].said(since: instant).map { Pages.reading($0).item }
    }

    // MARK: Wishes for further pages

    func wish(of name: String) -> UInt64 {
        let now = clock.now
        return state.withLock { state in
            state.lastWish += 1
            state.accounts[name, default: Account()].wishes[state.lastWish] = now
            return state.lastWish
        }
    }

    /// When it came; nil: it is none any more.
    func take(_ wish: UInt64, of name: String) -> ContinuousClock.Instant? {
        state.withLock { $0.accounts[name]?.wishes.removeValue(forKey: wish) }
    }

    func look(at status: PipelineStatus, of name: String, requests: Int) {
        let store = disk[name]
        let offered = status.generation?.number ?? 0
        let text = store.text
        if let text {
            expect(
                Pages.items(of: text).allSatisfy { $0.hasPrefix("good") }, "\(name): \(text) was let through")
            expect(offered > 0, "\(name): a copy is there and not offered")
        }
        let kept = store.rememberedNow.generation
        expect(
            status.run != nil || status.generation == kept,
            "\(name): generation \(kept?.number ?? 0) is there, \(offered) is offered")
        expect(
            kept == nil || kept?.size == UInt64(text?.utf8.count ?? 0) || status.run != nil,
            "\(name): generation \(offered) is said to have \(kept?.size ?? 0) bytes, and is '\(text ?? "")'")
        let before = state.withLock { state in
            state.accounts[name]?.heardAll()
            defer { state.accounts[name]?.offered = offered }
            return state.accounts[name] ?? Account()
        }
        let faults = state.withLock {
            $0.accounts[name]?.looked(at: status.lastCheck, on: store.rememberedNow.lastCheck) ?? []
        }
        for fault in faults { note("\(name): \(fault)") }
        expect(offered >= before.offered, "\(name): generation \(offered) is offered after \(before.offered)")
        expect(requests <= 1, "\(name): \(requests) requests at once")
        expect(status.run?.run == before.running, "\(name): run \(status.run?.run ?? 0) is shown")
        let isAtRest = status.run == nil && status.waitsFor == nil && status.activity != .held
        expect(before.owed.isEmpty || !isAtRest, "\(name): \(before.owed) was forgotten")
    }
}

/// A number for all that happened, in its order: FNV-1a.
private struct Trace {
    private(set) var number: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ name: String, _ event: EngineEvent, _ second: Double) {
        switch event {
        case .runStarted(let order): add("\(second) \(name) starts \(order.run) for \(order.causes.summary)")
        case .runEnded(let summary, _): add("\(second) \(name) ends \(summary.run) \(summary.outcome.rawValue)")
        case .suppressed(let causes, _): add("\(second) \(name) needs not \(causes.summary)")
        default: break
        }
    }

    private mutating func add(_ text: String) {
        for byte in text.utf8 { number = (number ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
}
