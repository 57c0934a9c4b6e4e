import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Synchronization

/// What the status line, `GetDaemon` and the timer's row of `freshetctl signals` say of all pipelines.
///
/// It is kept: a change of a pipeline costs one look at that pipeline, and reading costs nothing for the others.
@DaemonActor
final class PipelineOverview {
    /// What is kept of one pipeline.
    struct Entry: Hashable, Sendable {
        var state: PipelineState
        /// Why and since when it fails; nil: it does not fail.
        var failure: Failure?
        var isExpired = false
        var isWithdrawn = false
        /// The next planned run; nil: none is planned, or a run is in progress.
        var next: PlannedRun?
    }

    /// Why a pipeline fails.
    struct Failure: Hashable, Sendable {
        /// For readers of the content.
        var reason: String
        /// For everybody.
        var publicReason: String
        /// Wall-clock microseconds since 1970.
        var since: Int64
    }

    /// The number of changes that are handled before other work gets the loop. They take some hundred microseconds.
    private static let changesPerPause = 64

    /// The pipelines that may have changed since they were looked at.
    private nonisolated let changed = Mutex<Set<String>>([])
    private var known: [String: (state: PipelineState, next: PlannedRun?)] = [:]
    /// The pipelines that fail.
    private(set) var failures: [String: Failure] = [:]
    private(set) var expired: Set<String> = []
    private(set) var withdrawn: Set<String> = []
    /// The number of pipelines in each state.
    private(set) var counts = PipelineCounts()
    /// The number of looks at a pipeline so far.
    private(set) var looks: UInt64 = 0
    private var look: (String) -> Entry? = { _ in nil }

    nonisolated init() {}

    /// - Parameter look: returns the present state of a pipeline; nil: there is none of this name.
    func begin(_ look: @escaping @DaemonActor (String) -> Entry?) { self.look = look }

    /// Reserves memory for this many pipelines, which are about to be added.
    func reserveCapacity(_ count: Int) { known.reserveCapacity(count) }

    /// A pipeline may have changed, begun or ended. Safe to call from any thread.
    nonisolated func mayHaveChanged(_ pipeline: String) {
        changed.withLock { _ = $0.insert(pipeline) }
    }

    /// Looks at all pipelines that may have changed. Other work continues meanwhile.
    func update() async {
        while updateSome() { await Task.yield() }
    }

    /// Looks at all pipelines that may have changed, without a pause.
    func updateAtOnce() {
        while updateSome() {}
    }

    /// Returns whether there are more.
    private func updateSome() -> Bool {
        let (some, areMore) = changed.withLock { changed in
            var some: [String] = []
            while some.count < Self.changesPerPause, let one = changed.popFirst() { some.append(one) }
            // An empty set keeps the memory that it had when all pipelines changed.
            if changed.isEmpty { changed = [] }
            return (some, !changed.isEmpty)
        }
        for name in some { update(name) }
        return areMore
    }

    private func update(_ name: String) { set(look(name), of: name) }

    /// Keeps the present state of a pipeline. A pipeline that has just been added needs no other look.
    func set(_ entry: Entry?, of name: String) {
        looks += 1
        // Most pipelines have none of the rare states, which need no look-up then.
        if entry?.failure != nil || !failures.isEmpty { failures[name] = entry?.failure }
        if entry?.isExpired == true { expired.insert(name) } else if !expired.isEmpty { expired.remove(name) }
        if entry?.isWithdrawn == true { withdrawn.insert(name) } else if !withdrawn.isEmpty { withdrawn.remove(name) }
        let before =
            if let entry { known.updateValue((entry.state, entry.next), forKey: name) } else {
                known.removeValue(forKey: name)
            }
        if let before { counts.add(before.state, -1) }
        if let entry { counts.add(entry.state, 1) }
    }

    /// The pipelines in one of these states.
    func names(in wanted: Set<PipelineState>) -> [String] {
        known.filter { wanted.contains($0.value.state) }.map(\.key)
    }

    /// The next planned run.
    ///
    /// - Parameter reason: why it is planned; nil: for any reason.
    func next(for reason: PlannedRun.Reason? = nil) -> (pipeline: String, at: BootInstant)? {
        var next: (pipeline: String, at: BootInstant)?
        for (name, (_, run)) in known {
            guard let run, reason == nil || run.reason == reason else { continue }
            if next.map({ run.at < $0.at }) ?? true { next = (name, run.at) }
        }
        return next
    }
}

extension PipelineOverview.Entry {
    /// The present state of a pipeline.
    init(_ pipeline: HostedPipeline) {
        switch pipeline {
        case .running(let running): self.init(running.runner)
        case .invalid(let invalid):
            self.init(
                state: .failed,
                failure: PipelineOverview.Failure(
                    reason: invalid.message, publicReason: invalid.message, since: invalid.since))
        }
    }

    /// The present state of a running pipeline.
    init(_ runner: PipelineRunner) {
        let snapshot = runner.snapshot
        self.init(
            state: PipelineState(snapshot.activity), isExpired: snapshot.isExpired && !snapshot.isWithdrawn,
            isWithdrawn: snapshot.isWithdrawn, next: snapshot.next)
        guard case .failed(let failure, let since, _) = snapshot.activity else { return }
        self.failure = PipelineOverview.Failure(
            reason: failure.message, publicReason: failure.publicMessage,
            since: WallClock.microseconds(at: since))
    }
}

extension PipelineCounts {
    /// Changes the number of pipelines in a state.
    fileprivate mutating func add(_ state: PipelineState, _ change: Int64) {
        total += change
        switch state {
        case .idle: idle += change
        case .waiting: waiting += change
        case .loading: loading += change
        case .loaded: loaded += change
        case .failed: failed += change
        case .held: held += change
        case .unknown: break
        }
    }
}
