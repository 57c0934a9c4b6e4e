import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import Glibc
import TestSupport
import WorldTestSupport

/// Observes all pipelines of a machine, and records violations of these rules:
///
/// - the runs of a pipeline do not overlap, each has a cause, and run numbers are unique, also across restarts;
/// - the causes of a run are exactly the received signals without an answer: no firing is lost, counted twice, answered
///   by an earlier run (for a request) or by nothing (for an environment signal);
/// - each firing leads to a run or to a reason;
/// - a burst does not cost more runs than it may;
/// - a run that needs the network does not start without it, unless it is forced or an overdue check is attempted
///   anyway;
/// - no run starts during `Retry-After`, unless it is forced, or sooner than `min-interval` allows;
/// - no run starts while the machine is about to sleep; nothing is done after a sleep before the wake is reported; no
///   check comes before it is due;
/// - each request for a further page is answered once, not by a check; no page is loaded without a request, and none
///   counts as a check;
/// - each copy on the disk is published, was accepted by the checks, and is content that the origin sent meanwhile.
///
/// The witness counts from the reported events; from the engine it only takes when runs start and end.
final class Witness: Sendable {
    /// The most recorded errors: the first says most.
    static let limit = 20

    private struct State {
        var accounts: [String: Account] = [:]
        var errors: [String] = []
        var environment = HostEnvironment()
        var lastRequest: UInt64 = 0
        /// A digest of all events, to compare two courses.
        var trace = Trace()
    }

    /// The state that all pipelines share.
    struct HostEnvironment {
        var goesToSleep = false
        var isMetered = false
        /// The machine slept, and it is not reported yet.
        var isUnreported = false
        /// Since when the network is lost.
        var awaySince: BootInstant?
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

    /// The recorded errors with their second. Empty at the end of a successful story.
    var errors: [String] { state.withLock { $0.errors } }
    /// The pipelines whose requests no run has followed yet.
    var unanswered: [String] {
        state.withLock { $0.accounts.filter { $0.value.pending.hasRequest }.keys.sorted() }
    }
    /// A digest that is equal for two courses with the same events.
    var trace: HistoryDigest { state.withLock { $0.trace.digest } }
    /// When a pipeline's runs started, in seconds.
    func starts(of name: String) -> [Double] { state.withLock { $0.accounts[name]?.starts ?? [] } }
    func outcomes(of name: String) -> [RunOutcome] { state.withLock { $0.accounts[name]?.outcomes ?? [] } }
    /// The causes of each run, as text.
    func causes(of name: String) -> [String] { state.withLock { $0.accounts[name]?.causes ?? [] } }
    /// How many runs failed and counted as failures.
    func failures(of name: String) -> Int { state.withLock { $0.accounts[name]?.counted ?? 0 } }
    /// The number of runs of all pipelines.
    var runs: Int { state.withLock { $0.accounts.values.reduce(0) { $0 + $1.starts.count } } }
    /// The number of runs that loaded a further page.
    var pageRuns: Int { state.withLock { $0.accounts.values.reduce(0) { $0 + $1.pageRuns } } }
    /// The pipelines with unanswered requests for further pages.
    var unansweredPageRequests: [String] {
        state.withLock { $0.accounts.filter { !$0.value.pageRequests.isEmpty }.keys.sorted() }
    }

    func expect(_ condition: Bool, _ error: @autoclosure () -> String) {
        if !condition { record(error()) }
    }

    private func record(_ error: String) {
        let line = "at \(seconds(clock.manual.elapsed)) s: \(error)"
        notify("FAULT \(error)")
        state.withLock { if $0.errors.count < Self.limit { $0.errors.append(line) } }
    }

    /// The story of the events, for debugging: it is printed if `FRESHET_STORY` is set.
    func notify(_ event: @autoclosure () -> String) {
        if Self.isNotified { print("\(seconds(clock.manual.elapsed)) \(event())") }
    }

    private static let isNotified = getenv("FRESHET_STORY") != nil

    private func change(_ name: String, _ body: (inout Account) -> Void) {
        state.withLock { state in
            // Changed in place: a copy would copy everything that is recorded for it.
            guard let index = state.accounts.index(forKey: name) else { return }
            body(&state.accounts.values[index])
        }
    }

    // MARK: Events of the machine

    /// Another life of the daemon: state that was only in memory is lost.
    func booted() {
        state.withLock { state in
            state.environment = HostEnvironment()
            for name in state.accounts.keys { state.accounts[name]?.restart() }
        }
    }

    /// Operations that had not reached the disk are lost.
    func crashed() {
        state.withLock { state in
            for name in state.accounts.keys {
                let remembered = disk[name].rememberedNow
                state.accounts[name]?.lastRun = remembered.lastRun
                state.accounts[name]?.retryAfterWall = remembered.retryAfter
                // State on the disk is read at the next start.
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

    /// Another configuration is active.
    ///
    /// - Parameter sameProduct: if false, it has another source, which has no requests yet.
    func changes(_ definition: PipelineDefinition, sameProduct: Bool, splay: Duration) {
        let now = clock.now
        change(definition.name) { account in
            account.configured(definition, splay: splay)
            guard !sameProduct else { return }
            account.retryAfter = nil
            account.retryAfterWall = nil
            account.forgetChecks()
            // The failed run goes through the debouncer once more.
            account.burst.rises(at: now, allowsAnother: true)
        }
    }

    func dismissed(_ name: String) {
        let running = state.withLock { $0.accounts[name]?.running }
        change(name) { $0.restart() }
        expect(running == nil, "\(name): run \(running ?? 0) continues after the pipeline was removed")
    }

    func holds(_ name: String, _ held: Bool) { change(name) { $0.isHeld = held } }

    /// Whether a request of the operator would be refused.
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
            guard isUp == (state.environment.awaySince != nil) else { return }
            state.environment.awaySince = isUp ? nil : now
            guard isUp else { return }
            for name in state.accounts.keys { state.accounts[name]?.released(at: now) }
        }
    }

    func goesToSleep(_ sleeps: Bool) { state.withLock { $0.environment.goesToSleep = sleeps } }
    func metered(_ isMetered: Bool) { state.withLock { $0.environment.isMetered = isMetered } }
    func slept() { state.withLock { $0.environment.isUnreported = true } }
    func woke() {
        state.withLock { state in
            state.environment.goesToSleep = false
            state.environment.isUnreported = false
        }
    }

    func clockStepped() {
        let (now, wallNow) = (clock.now, clock.wallNow)
        state.withLock { state in
            for name in state.accounts.keys {
                state.accounts[name]?.recallRetryAfter(at: now, wallNow)
                state.accounts[name]?.mayHaveBeenChecked = true
                // The content may have been rejected because of the time.
                if state.accounts[name]?.wasRejected == true { state.accounts[name]?.lastCheck = nil }
                // A run that failed because of a certificate's dates is retried immediately.
                state.accounts[name]?.burst.allow()
            }
        }
    }

    /// A signal fires that this pipeline subscribes to.
    func fired(_ signal: String, at name: String, times: Int = 1) {
        let now = clock.now
        notify("\(name): \(signal) × \(times)")
        change(name) { $0.fired(signal, times: times, at: now) }
    }

    // MARK: Events of the engine

    func received(_ event: EngineEvent, of name: String) {
        let now = clock.now
        let wallNow = clock.wallNow
        let second = seconds(clock.manual.elapsed)
        notify("\(name): \(event)")
        let copy = disk[name].text
        let (errors, url) = state.withLock { state -> ([String], String?) in
            state.trace.add(name, event, second)
            let environment = state.environment
            return state.accounts[name, default: Account()].received(
                event, at: now, wallNow, second, environment, copy: copy)
        }
        for error in errors { record("\(name): \(error)") }
        // The URL of a successful run.
        guard let url, case .runEnded(let summary, _) = event else { return }
        let before = state.withLock { $0.accounts[name]?.copyBefore }
        expectPages(of: name, at: url, summary, before: before, kept: copy ?? "")
    }

    /// The last content of an origin, without the next page.
    func sentItems(at url: String, since instant: BootInstant) -> [String] {
        internet[url].sent(since: instant).map { Pages.reading($0).item }
    }

    // MARK: Requests for further pages

    func pageRequest(of name: String) -> UInt64 {
        let now = clock.now
        return state.withLock { state in
            state.lastRequest += 1
            state.accounts[name, default: Account()].pageRequests[state.lastRequest] = now
            return state.lastRequest
        }
    }

    /// When it came; nil: there is no request any more.
    func take(_ pageRequest: UInt64, of name: String) -> BootInstant? {
        state.withLock { $0.accounts[name]?.pageRequests.removeValue(forKey: pageRequest) }
    }

    func look(at status: PipelineStatus, of name: String, requests: Int) {
        let store = disk[name]
        let published = status.generation?.number ?? 0
        let text = store.text
        if let text {
            expect(
                Pages.items(of: text).allSatisfy { $0.hasPrefix("good") }, "\(name): \(text) was let through")
            // A run records its first copy a moment after the commit.
            expect(published > 0 || status.run != nil, "\(name): a copy exists and is not published")
        }
        let kept = store.rememberedNow.generation
        expect(
            status.run != nil || status.generation == kept,
            "\(name): generation \(kept?.number ?? 0) exists, \(published) is published")
        expect(
            kept == nil || kept?.size == UInt64(text?.utf8.count ?? 0) || status.run != nil,
            "\(name): generation \(published) is reported with \(kept?.size ?? 0) bytes, and is '\(text ?? "")'")
        let before = state.withLock { state in
            state.accounts[name]?.handledAll()
            defer { state.accounts[name]?.published = published }
            return state.accounts[name] ?? Account()
        }
        let errors = state.withLock {
            $0.accounts[name]?.looked(at: status.lastCheck, on: store.rememberedNow.lastCheck) ?? []
        }
        for error in errors { record("\(name): \(error)") }
        expect(published >= before.published, "\(name): generation \(published) is published after \(before.published)")
        expect(requests <= 1, "\(name): \(requests) concurrent requests")
        expect(status.run?.run == before.running, "\(name): run \(status.run?.run ?? 0) is shown")
        let isIdle = status.run == nil && status.waitsFor == nil && status.activity != .held
        expect(before.pending.isEmpty || !isIdle, "\(name): \(before.pending) was forgotten")
    }
}

/// A digest of the events, in their order.
private struct Trace {
    private(set) var digest = HistoryDigest()

    mutating func add(_ name: String, _ event: EngineEvent, _ second: Double) {
        // To compare two versions of the code, all details count.
        if HistoryDigest.isStored { return digest.add("\(second) \(name) \(event)") }
        switch event {
        case .runStarted(let order): digest.add("\(second) \(name) starts \(order.run) for \(order.causes.summary)")
        case .runEnded(let summary, _):
            digest.add("\(second) \(name) ends \(summary.run) \(summary.outcome.rawValue)")
        case .ignored(let causes, _): digest.add("\(second) \(name) ignores \(causes.summary)")
        case .skipped(let causes, _): digest.add("\(second) \(name) needs not \(causes.summary)")
        default: break
        }
    }
}
