import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import WorldTestSupport

/// Sees all that a machine's pipelines do, and notes what must never be:
///
/// - two runs of a pipeline at once, a run without a cause, a run's number twice, also across restarts;
/// - a start while the origin wants to be left alone, unless it is forced, or sooner than `min-interval` allows;
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
            for name in state.accounts.keys {
                state.accounts[name]?.running = nil
                state.accounts[name]?.lastStart = nil
                state.accounts[name]?.startBefore = nil
                state.accounts[name]?.demand = nil
            }
        }
    }

    func hosts(_ definition: PipelineDefinition) {
        state.withLock { $0.accounts[definition.name, default: Account()].minInterval = definition.refresh.minInterval }
    }

    func dismissed(_ name: String) {
        let running = state.withLock { state in
            defer {
                state.accounts[name]?.running = nil
                state.accounts[name]?.lastStart = nil
                state.accounts[name]?.demand = nil
            }
            return state.accounts[name]?.running
        }
        expect(running == nil, "\(name): run \(running ?? 0) goes on after the pipeline was removed")
    }

    /// Its source is another one, which asked for nothing.
    func changed(_ name: String) {
        state.withLock { $0.accounts[name]?.retryAfter = nil }
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
        let second = seconds(clock.manual.elapsed)
        let faults = state.withLock { state -> [String] in
            var account = state.accounts[name, default: Account()]
            defer { state.accounts[name] = account }
            switch event {
            case .runStarted(let order): return account.started(order, at: now, second: second)
            case .runEnded(let summary, _): return account.ended(summary, at: now)
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
        let before = state.withLock { state in
            defer { state.accounts[name]?.offered = offered }
            return state.accounts[name]?.offered ?? 0
        }
        expect(offered >= before, "\(name): generation \(offered) is offered after \(before)")
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
        running = order.run
        lastRun = order.run
        startBefore = lastStart
        lastStart = now
        starts.append(second)
        causes.append(order.causes.summary)
        return faults
    }

    fileprivate mutating func ended(_ summary: RunSummary, at now: ContinuousClock.Instant) -> [String] {
        var faults: [String] = []
        if running != summary.run { faults.append("run \(summary.run) ends and was not under way") }
        running = nil
        outcomes.append(summary.outcome)
        switch summary.outcome {
        case .changed, .unchanged:
            retryAfter = nil
            if let demand, summary.run > demand { self.demand = nil }
        case .failed:
            if summary.counts {
                counted += 1
            } else {
                // It reached no origin that would have to be spared.
                lastStart = startBefore
            }
            if let wait = summary.failure?.retryAfter, wait > .zero { retryAfter = now.advanced(by: wait) }
        case .superseded, .cancelled: break
        }
        return faults
    }
}
