import FreshetControl

/// The events between two instants, as lanes: the signals, and the pipelines with their runs and waits.
struct Timeline: Hashable, Sendable {
    struct Firing: Hashable, Sendable {
        var at: Int64
        /// The cause.
        var detail: String?
    }

    /// A run, a wait or a hold of a pipeline.
    struct Part: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            /// The outcome is nil while the run is in progress.
            case run(RunOutcome?)
            case waiting(WaitingReason)
            case held
        }

        var from: Int64
        var to: Int64
        var kind: Kind
        /// For a run: its number, its causes and its failure.
        var run: RunStatus?
    }

    struct Source: Hashable, Sendable {
        var name: String
        var firings: [Firing]
        /// When its own target was not reachable; nil: it has none, and the offline times of the machine apply.
        var offline: [TimeRange]?
    }

    struct Pipeline: Hashable, Sendable {
        var name: String
        var parts: [Part]
        /// When its own target was not reachable; nil: it has none, and the offline times of the machine apply.
        var offline: [TimeRange]?

        /// The number of runs.
        var runs: Int { parts.count { if case .run = $0.kind { true } else { false } } }
    }

    typealias TimeRange = RecentHistory.TimeRange

    var since: Int64
    var until: Int64
    /// The sources that fired, by name.
    var sources: [Source] = []
    /// The pipelines with events, and the selected pipelines, by name.
    var pipelines: [Pipeline] = []
    /// The number of other pipelines, which have no events.
    var idlePipelines = 0
    /// The number of pipelines with events that are not configured any more, and are left out.
    var removedPipelines = 0
    /// When the machine had no way to other networks.
    var offline: [TimeRange] = []
    var asleep: [TimeRange] = []
    var unseen: [TimeRange] = []
    var notes: [String] = []

    /// - Parameters:
    ///   - history: the events of the shown pipelines, and of all signals.
    ///   - descriptions: the shown pipelines.
    ///   - isChosen: whether the pipelines were named: then each has a lane, and only their signals are shown.
    ///   - hasRemoved: whether pipelines have a lane that are not configured any more.
    init(
        _ history: RecentHistory, _ descriptions: [PipelineDescription], isChosen: Bool, hasRemoved: Bool = false
    ) {
        since = history.since
        until = max(history.until, history.since + 1)
        unseen = history.unseen
        notes = history.notes
        let subscribed = Set(descriptions.flatMap(\.signals))
        let configured = Set(descriptions.map(\.name))
        func isShown(_ pipeline: String) -> Bool { hasRemoved || configured.contains(pipeline) }
        var firings: [String: [Firing]] = [:]
        var lanes: [String: PipelineLane] = [:]
        var machine = MachineLane()
        for event in history.events {
            switch event.kind {
            case .signal:
                guard let name = event.source ?? event.signal, event.at >= since, event.at <= until else { break }
                guard !isChosen || event.pipeline != nil || subscribed.contains(name) else { break }
                if let pipeline = event.pipeline, !isShown(pipeline) { break }
                firings[name, default: []].append(Firing(at: event.at, detail: event.detail))
            case .fact: machine.apply(event)
            case .runStarted, .runEnded, .state:
                guard let pipeline = event.pipeline else { break }
                lanes[pipeline, default: PipelineLane()].apply(event)
            case .skipped: notes.append("Some events are missing: this client read too slowly.")
            case .reloaded, .unknown: break
            }
        }
        (offline, asleep) = machine.stretches(from: since, to: until)
        let targets = machine.targets(from: since, to: until)
        sources = firings.keys.sorted().map { name in
            Source(name: name, firings: firings[name] ?? [], offline: Self.offline([name], targets))
        }
        let signals = Dictionary(descriptions.map { ($0.name, $0.signals) }) { first, _ in first }
        for name in configured.union(lanes.keys).sorted() {
            let parts = lanes[name]?.parts(from: since, to: until) ?? []
            if parts.isEmpty, !isChosen || !configured.contains(name) {
                if configured.contains(name) { idlePipelines += 1 }
            } else if isShown(name) {
                pipelines.append(
                    Pipeline(name: name, parts: parts, offline: Self.offline(signals[name] ?? [], targets)))
            } else {
                removedPipelines += 1
            }
        }
    }

    /// When the targets of these signals were not reachable. Nil without a target, or if the machine's own network is
    /// among the signals.
    private static func offline(_ signals: [String], _ targets: [String: [TimeRange]]) -> [TimeRange]? {
        guard !signals.contains("network") else { return nil }
        let own = signals.filter { $0.hasPrefix("network ") }
        return own.isEmpty ? nil : own.flatMap { targets[$0] ?? [] }
    }

    /// The sentences below a picture about what it leaves out.
    var remarks: [String] {
        var remarks = notes
        if idlePipelines > 0 {
            remarks.append("\(Count.text(idlePipelines, "pipeline")) without events in this time.")
        }
        if removedPipelines > 0 {
            remarks.append("\(Count.text(removedPipelines, "removed pipeline")) not shown; --all shows them.")
        }
        return remarks
    }

    /// Builds the lane of a pipeline, event by event.
    private struct PipelineLane {
        private var parts: [Part] = []
        private var open: Part?
        private var runs: [Int64: RunStatus] = [:]

        mutating func apply(_ event: ControlEvent) {
            switch event.kind {
            case .runStarted:
                close(at: event.at)
                open = Part(from: event.run?.started ?? event.at, to: event.at, kind: .run(nil), run: event.run)
            case .runEnded:
                guard let run = event.run else { return }
                // The end event has the exact beginning, and may be the only event of the run.
                if case .run? = open?.kind { open = nil } else { close(at: run.started) }
                let end = run.durationUSec.map { run.started + $0 } ?? event.at
                parts.append(
                    Part(from: run.started, to: max(run.started, end), kind: .run(run.outcome ?? .unknown), run: run))
            case .state:
                if case .run? = open?.kind, event.state == .loading || event.state == .waiting { return }
                close(at: event.at)
                if event.state == .held {
                    open = Part(from: event.at, to: event.at, kind: .held)
                } else if event.state == .waiting, let reason = event.waitingFor {
                    open = Part(from: event.at, to: event.at, kind: .waiting(reason))
                }
            default: return
            }
        }

        private mutating func close(at instant: Int64) {
            guard var part = open else { return }
            open = nil
            part.to = max(part.from, instant)
            // A run without an end event.
            if case .run(nil) = part.kind { part.kind = .run(.unknown) }
            parts.append(part)
        }

        /// The parts between two instants, cut to them.
        func parts(from since: Int64, to until: Int64) -> [Part] {
            var all = parts
            if var last = open {
                last.to = max(last.from, until)
                all.append(last)
            }
            return all.compactMap { part in
                guard part.to >= since, part.from <= until else { return nil }
                var part = part
                part.from = max(part.from, since)
                part.to = min(part.to, until)
                return part
            }
        }
    }

    /// Builds the lane of the machine: sleeps, and offline times of the machine and of single targets.
    private struct MachineLane {
        /// Offline times by target; the key of the machine's own is `network`.
        private var offline: [String: [TimeRange]] = [:]
        private var asleep: [TimeRange] = []
        private var lostAt: [String: Int64] = [:]
        private var sleepsSince: Int64?

        mutating func apply(_ event: ControlEvent) {
            guard let fact = event.detail else { return }
            switch event.signal {
            case "network":
                let target = event.source ?? "network"
                if fact.hasPrefix("not reachable") {
                    if lostAt[target] == nil { lostAt[target] = event.at }
                } else if let from = lostAt.removeValue(forKey: target) {
                    offline[target, default: []].append(TimeRange(from: from, to: event.at))
                }
            case "resume":
                if fact.hasPrefix("going to sleep") {
                    sleepsSince = event.at
                    return
                }
                if let slept = Self.sleep(fact) {
                    asleep.append(TimeRange(from: event.at - slept, to: event.at))
                } else if let from = sleepsSince {
                    asleep.append(TimeRange(from: from, to: event.at))
                }
                sleepsSince = nil
            default: return
            }
        }

        /// Parses `awake, after 28800.4 s of sleep`, in microseconds.
        private static func sleep(_ fact: String) -> Int64? {
            let words = fact.split(separator: " ")
            guard let place = words.firstIndex(of: "after"), words.count > place + 2, words[place + 2] == "s",
                let seconds = Double(words[place + 1]), seconds >= 0, seconds < 1e9
            else { return nil }
            return Int64(seconds * 1e6)
        }

        func stretches(from since: Int64, to until: Int64) -> (offline: [TimeRange], asleep: [TimeRange]) {
            let open = sleepsSince.map { TimeRange(from: $0, to: until) }
            return (
                targets(from: since, to: until)["network"] ?? [],
                Self.cut(asleep + [open].compactMap(\.self), from: since, to: until)
            )
        }

        /// The offline times of each target.
        func targets(from since: Int64, to until: Int64) -> [String: [TimeRange]] {
            var all = offline
            for (target, from) in lostAt { all[target, default: []].append(TimeRange(from: from, to: until)) }
            return all.mapValues { Self.cut($0, from: since, to: until) }
        }

        private static func cut(_ stretches: [TimeRange], from since: Int64, to until: Int64) -> [TimeRange] {
            stretches.compactMap { stretch in
                guard stretch.to > since, stretch.from < until else { return nil }
                return TimeRange(from: max(stretch.from, since), to: min(stretch.to, until))
            }
        }
    }
}
