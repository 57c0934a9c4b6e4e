import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals

/// One replay: an engine with the pipelines of the configuration, and the recorded events that are passed to it.
///
/// `@unchecked Sendable`: only the task of the replay changes it, and all tasks of a replay run on one thread.
final class ReplaySession: @unchecked Sendable {
    /// A run of the replay that ended.
    struct EndedRun: Sendable {
        var pipeline: String
        var summary: RunSummary
        var requests: Int
        /// Microseconds since 1970.
        var started: Int64
    }

    /// The ended runs, in the order of their ends.
    final class Log: Sendable {
        private let ended = Lock<[EndedRun]>([])

        var runs: [EndedRun] { ended.withLock { $0 } }
        var count: Int { ended.withLock { $0.count } }

        func append(_ run: EndedRun) { ended.withLock { $0.append(run) } }
    }

    let engine: PipelineEngine
    let log = Log()
    private let history: RecordedHistory
    private let executor: ReplayExecutor
    private let clock: ReplayClock
    private var runners: [String: PipelineRunner] = [:]
    private var held: Set<String> = []
    /// The signals by row of `Signals`; parameters have one for each pipeline.
    private let sources: [String: SignalSource]
    /// The networks by row.
    private let feeds: [String: NetworkFeed]
    private let pauses: [RecordedHistory.Pause]
    private var nextPause = 0
    private var lastWake: Int64?
    /// The requests of the operator, oldest first: only the causes of runs show them.
    private let requests: [(at: Int64, pipeline: String)]
    private var nextRequest = 0

    init(_ replay: Replay, _ history: RecordedHistory, _ executor: ReplayExecutor) {
        self.history = history
        self.executor = executor
        pauses = history.pauses
        let clock = ReplayClock(wallStart: WallTime(microseconds: history.since), zones: replay.zones)
        self.clock = clock
        let origin = ReplayOrigin(history.runs, clock: clock)
        var copies: [String: ReplayStore.Copy] = [:]
        for pipeline in replay.pipelines { copies[pipeline.name] = history.stateAtStart(of: pipeline.name) }
        engine = PipelineEngine(
            EngineDependencies(
                fetcher: origin, transformer: ReplayTransformer(), store: ReplayStore(copies, clock: clock),
                clock: clock, requestLimiter: RequestLimiter(replay.limits), prober: ReplayProber()))
        var sources: [String: SignalSource] = [:]
        var feeds: [String: NetworkFeed] = [:]
        let facts = history.factsAtStart()
        for pipeline in replay.pipelines {
            for row in pipeline.rows(in: history) where sources[row] == nil {
                sources[row] = SignalSource(String(Self.signal(ofRow: row)), now: { clock.now.continuous })
            }
            sources[Self.parameterRow(pipeline.name)] = SignalSource(
                SignalName.parameter, now: { clock.now.continuous })
            let network = pipeline.network(in: history)
            guard feeds[network] == nil else { continue }
            feeds[network] = NetworkFeed(
                Self.state(facts[network] ?? "reachable", epoch: 1, at: clock.now, before: nil))
        }
        (self.sources, self.feeds) = (sources, feeds)
        // A run has each signal once, so a second cause of the operator is not the daemon's.
        requests = history.runs.flatMap { name, runs in
            runs.compactMap { run in
                run.causes.first { $0.signal == SignalName.operation }.map { (at: $0.first, pipeline: name) }
            }
        }.filter { $0.at >= history.since }.sorted { ($0.at, $0.pipeline) < ($1.at, $1.pipeline) }
        for (number, pipeline) in replay.pipelines.enumerated() {
            add(pipeline, copies[pipeline.name] ?? ReplayStore.Copy(), replay.splay, UInt64(number) + 1, origin)
        }
        if let fact = facts[SignalName.metered] { engine.meteredChanged(Self.obstacle(fact)) }
    }

    private func add(
        _ pipeline: ReplayedPipeline, _ copy: ReplayStore.Copy, _ splay: Duration, _ seed: UInt64,
        _ origin: ReplayOrigin
    ) {
        let name = pipeline.name
        let rows = pipeline.rows(in: history).sorted() + [Self.parameterRow(name)]
        guard let feed = feeds[pipeline.network(in: history)] else { return }
        var remembered = copy.remembered
        remembered.generation = copy.generation
        let commits = sources["\(SignalName.pipeline) \(name)"]
        // The seed is always the same, so that the same recording gives the same replay.
        runners[name] = engine.add(
            pipeline.definition, remembered: remembered, signal: .merge(rows.compactMap { sources[$0]?.signal }),
            network: feed, splay: splay, share: pipeline.share, seed: seed
        ) { [log, clock] report in
            guard case .runEnded(let summary, _) = report.event else { return }
            let run = EndedRun(
                pipeline: name, summary: summary, requests: origin.takeRequests(of: name),
                started: clock.wall(summary.started).microseconds)
            log.append(run)
            if let generation = report.committed { commits?.fire("\(name) committed generation \(generation.number)") }
        }
    }

    /// The row that this name space has for the parameters of a pipeline; no other row has a line feed.
    private static func parameterRow(_ pipeline: String) -> String { "\(SignalName.parameter)\n\(pipeline)" }

    /// The name of a row's signal: files and parameters have the whole row, others the first word.
    private static func signal(ofRow row: String) -> Substring {
        let word = row.prefix { $0 != " " }
        return word == "file" ? row[...] : word
    }

    // MARK: Time

    /// Passes all events to the engine; false: there are too many runs.
    func play() async -> Bool {
        await executor.idle()
        let events = history.recording.events
        for (index, event) in events.enumerated() where event.at < history.since && event.kind == .state {
            apply(event, at: index, of: events)
        }
        for (index, event) in events.enumerated() where event.at >= history.since {
            guard await pass(until: event.at) else { return false }
            apply(event, at: index, of: events)
            await executor.idle()
        }
        guard await pass(until: history.until) else { return false }
        return true
    }

    /// Lets time pass, with the operator's requests; false: there are too many runs.
    private func pass(until target: Int64) async -> Bool {
        while nextRequest < requests.endIndex, requests[nextRequest].at <= target {
            let request = requests[nextRequest]
            nextRequest += 1
            guard await advance(to: request.at) else { return false }
            runners[request.pipeline]?.requestRefresh(force: false)
            await executor.idle()
        }
        return await advance(to: target)
    }

    private func advance(to target: Int64) async -> Bool {
        while nextPause < pauses.endIndex, pauses[nextPause].from < target {
            let pause = pauses[nextPause]
            guard await expire(until: pause.from) else { return false }
            clock.jump(to: clock.instant(min(pause.to, target)))
            guard pause.to <= target else { return true }
            nextPause += 1
            if pause.isSleep {
                wake(at: pause.to)
                await executor.idle()
            }
        }
        return await expire(until: target)
    }

    /// Calls the timers that are due until an instant, each at its time.
    private func expire(until target: Int64) async -> Bool {
        while let handler = clock.next(until: clock.instant(target)) {
            handler()
            await executor.idle()
            guard log.count <= Replay.mostRuns else { return false }
        }
        return true
    }

    // MARK: Events

    private func apply(_ event: ControlEvent, at index: Int, of events: [ControlEvent]) {
        switch event.kind {
        case .signal: fire(event, at: index, of: events)
        case .fact:
            guard let row = event.row, let fact = event.detail else { return }
            switch event.signal {
            case SignalName.network: publish(fact, row, isNew: false)
            case SignalName.metered: engine.meteredChanged(Self.obstacle(fact))
            case SignalName.resume: engine.goesToSleep(fact == "going to sleep")
            default: break
            }
        case .state:
            guard let name = event.pipeline else { return }
            let isHeld = event.state == .held
            guard isHeld ? held.insert(name).inserted : held.remove(name) != nil else { return }
            runners[name]?.hold(since: isHeld ? clock.wallNow : nil)
        case .runStarted, .runEnded, .reloaded, .skipped, .unknown: break
        }
    }

    private func fire(_ event: ControlEvent, at index: Int, of events: [ControlEvent]) {
        guard let row = event.row, let signal = event.signal else { return }
        if let pipeline = event.pipeline {
            // Timers are the engine's own.
            if signal == SignalName.parameter { sources[Self.parameterRow(pipeline)]?.fire(event.detail) }
            return
        }
        // The engine's own commits fire this signal.
        guard signal != SignalName.pipeline, signal != SignalName.timer else { return }
        let isByHand = event.detail?.hasPrefix("fired by hand") ?? false
        if signal == SignalName.network, !isByHand {
            let fact = events[(index + 1)...].prefix(200).prefix { $0.at - event.at < RecordedHistory.moment }.first {
                $0.kind == .fact && $0.row == row
            }?.detail
            publish(fact.flatMap { $0.hasPrefix("reachable") ? $0 : nil } ?? event.detail ?? "", row, isNew: true)
        }
        if signal == SignalName.resume, !isByHand, lastWake.map({ event.at - $0 > RecordedHistory.moment }) ?? true {
            wake(at: event.at)
        }
        sources[row]?.fire(event.detail)
    }

    /// The machine woke up: connections of before are not used.
    private func wake(at instant: Int64) {
        lastWake = instant
        engine.woke()
        for feed in feeds.values {
            feed.publish { before in
                NetworkState(
                    reachable: before.reachable, epoch: before.epoch + 1, changedAt: before.changedAt, path: before.path
                )
            }
        }
    }

    // MARK: Facts

    /// Publishes the state of a network.
    ///
    /// - Parameter isNew: whether the signal fires, which begins a new epoch on a reachable network.
    private func publish(_ fact: String, _ row: String, isNew: Bool) {
        let now = clock.now
        feeds[row]?.publish { before in
            var state = Self.state(fact, epoch: before.epoch + (isNew ? 1 : 0), at: now, before: before)
            if isNew, !state.reachable {
                state = NetworkState(reachable: true, epoch: before.epoch + 1, changedAt: now, path: fact)
            }
            return state
        }
    }

    /// The state in a fact such as `reachable via 192.0.2.1 on wan0` or `not reachable: no route`.
    private static func state(
        _ fact: String, epoch: UInt64, at now: BootInstant, before: NetworkState?
    ) -> NetworkState {
        let isReachable = fact.hasPrefix("reachable")
        let path = String(fact.drop { $0 != " " }.dropFirst())
        let isSame = before.map { $0.reachable == isReachable && $0.epoch == epoch } ?? false
        return NetworkState(
            reachable: isReachable, epoch: epoch, changedAt: isSame ? before?.changedAt ?? now : now, path: path)
    }

    /// Why runs wait that must not use a metered connection, as `MeteredFact` has it.
    private static func obstacle(_ fact: String) -> String? {
        ["metered", "metered (guessed)", "asking NetworkManager", "NetworkManager is connecting"].contains(fact)
            ? fact : nil
    }
}

extension ReplayedPipeline {
    /// The row of its network: the recording may not have the configured target, because no pipeline used it.
    func network(in history: RecordedHistory) -> String {
        history.rows.contains(network) ? network : SignalName.network
    }

    /// The rows that it subscribes to.
    func rows(in history: RecordedHistory) -> Set<String> {
        Set(signals.map { $0 == network ? network(in: history) : $0 })
    }
}
