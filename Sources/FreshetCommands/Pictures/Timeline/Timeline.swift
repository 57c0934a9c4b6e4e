import FreshetControl

/// What happened between two instants, as lanes: the sources of signals, and the pipelines with their runs and waits.
struct Timeline: Hashable, Sendable {
    struct Firing: Hashable, Sendable {
        var at: Int64
        /// Why, for people.
        var detail: String?
    }

    /// What a pipeline did for some time.
    struct Part: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            /// Nil: it is under way.
            case run(RunOutcome?)
            case waiting(WaitingReason)
            case held
        }

        var from: Int64
        var to: Int64
        var kind: Kind
        /// Of a run: its number, its causes, and why it failed.
        var run: RunStatus?
    }

    struct Source: Hashable, Sendable {
        var name: String
        var firings: [Firing]
    }

    struct Pipeline: Hashable, Sendable {
        var name: String
        var parts: [Part]

        /// How many runs there are among the parts.
        var runs: Int { parts.count { if case .run = $0.kind { true } else { false } } }
    }

    typealias TimeRange = RecentHistory.TimeRange

    var since: Int64
    var until: Int64
    /// Those that fired, by name.
    var sources: [Source] = []
    /// Those that did something, by name; and those that were asked for.
    var pipelines: [Pipeline] = []
    /// How many others there are, which did nothing.
    var restingPipelines = 0
    var offline: [TimeRange] = []
    var asleep: [TimeRange] = []
    var unseen: [TimeRange] = []
    var notes: [String] = []

    /// - Parameters:
    ///   - history: of the pipelines that are shown, and of all signals.
    ///   - descriptions: how these pipelines are wired.
    ///   - isChosen: they were named: each has a lane, and of the signals only what they listen to.
    init(_ history: RecentHistory, _ descriptions: [PipelineDescription], isChosen: Bool) {
        since = history.since
        until = max(history.until, history.since + 1)
        unseen = history.unseen
        notes = history.notes
        let heard = Set(descriptions.flatMap(\.signals))
        var firings: [String: [Firing]] = [:]
        var lanes: [String: PipelineLane] = [:]
        var machine = MachineLane()
        for event in history.events {
            switch event.kind {
            case .signal:
                guard let name = event.source ?? event.signal, event.at >= since, event.at <= until else { break }
                guard !isChosen || event.pipeline != nil || heard.contains(name) else { break }
                firings[name, default: []].append(Firing(at: event.at, detail: event.detail))
            case .fact: machine.note(event)
            case .runStarted, .runEnded, .state:
                guard let pipeline = event.pipeline else { break }
                lanes[pipeline, default: PipelineLane()].note(event)
            case .skipped: notes.append("Some events are missing: they came faster than they were read.")
            case .reloaded, .unknown: break
            }
        }
        sources = firings.keys.sorted().map { Source(name: $0, firings: firings[$0] ?? []) }
        for name in Set(lanes.keys).union(descriptions.map(\.name)).sorted() {
            let parts = lanes[name]?.parts(from: since, to: until) ?? []
            if parts.isEmpty, !isChosen {
                restingPipelines += 1
            } else {
                pipelines.append(Pipeline(name: name, parts: parts))
            }
        }
        (offline, asleep) = machine.stretches(from: since, to: until)
    }

    /// One pipeline, event by event.
    private struct PipelineLane {
        private var parts: [Part] = []
        private var open: Part?
        private var runs: [Int64: RunStatus] = [:]

        mutating func note(_ event: ControlEvent) {
            switch event.kind {
            case .runStarted:
                close(at: event.at)
                open = Part(from: event.run?.started ?? event.at, to: event.at, kind: .run(nil), run: event.run)
            case .runEnded:
                guard let run = event.run else { return }
                // What the end says of the beginning is more exact, and may be all that is known.
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
            // A run of which nobody said how it ended.
            if case .run(nil) = part.kind { part.kind = .run(.unknown) }
            parts.append(part)
        }

        /// What lies between two instants, cut to them.
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

    /// The machine: when it was offline, and when it slept.
    private struct MachineLane {
        private var offline: [TimeRange] = []
        private var asleep: [TimeRange] = []
        private var lostAt: Int64?
        private var sleepsSince: Int64?

        mutating func note(_ event: ControlEvent) {
            // The way to elsewhere; single targets are another matter.
            guard event.source == nil, let fact = event.detail else { return }
            switch event.signal {
            case "network":
                if fact.hasPrefix("not reachable") {
                    if lostAt == nil { lostAt = event.at }
                } else if let from = lostAt {
                    offline.append(TimeRange(from: from, to: event.at))
                    lostAt = nil
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

        /// Microseconds of `awake, after 28800.4 s of sleep`.
        private static func sleep(_ fact: String) -> Int64? {
            let words = fact.split(separator: " ")
            guard let place = words.firstIndex(of: "after"), words.count > place + 2, words[place + 2] == "s",
                let seconds = Double(words[place + 1]), seconds >= 0, seconds < 1e9
            else { return nil }
            return Int64(seconds * 1e6)
        }

        func stretches(from since: Int64, to until: Int64) -> (offline: [TimeRange], asleep: [TimeRange]) {
            func cut(_ stretches: [TimeRange], _ open: Int64?) -> [TimeRange] {
                (stretches + (open.map { [TimeRange(from: $0, to: until)] } ?? [])).compactMap { stretch in
                    guard stretch.to > since, stretch.from < until else { return nil }
                    return TimeRange(from: max(stretch.from, since), to: min(stretch.to, until))
                }
            }
            return (cut(offline, lostAt), cut(asleep, sleepsSince))
        }
    }
}
