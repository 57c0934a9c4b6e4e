import FreshetControl
import FreshetModel
import FreshetPipelines

/// A recording, arranged for a replay.
struct RecordedHistory: Sendable {
    /// A range in which no timer expires: the machine slept, or no events are known.
    struct Pause: Hashable, Sendable {
        var from: Int64
        var to: Int64
        /// Whether the machine slept, so that it wakes at the end.
        var isSleep: Bool
    }

    let recording: Recording
    /// The ended runs of each pipeline, oldest first; also those before the window.
    let runs: [String: [RunStatus]]
    /// In order, without overlaps.
    let pauses: [Pause]
    /// The rows of `Signals` that the recording has a source or events of.
    let rows: Set<String>

    var since: Int64 { recording.header.since }
    var until: Int64 { recording.header.until }

    init(_ recording: Recording) {
        self.recording = recording
        var runs: [String: [RunStatus]] = [:]
        var rows = Set(recording.sources.map(\.name))
        for event in recording.events {
            switch event.kind {
            case .runEnded: if let run = event.run, let name = event.pipeline { runs[name, default: []].append(run) }
            case .signal, .fact: if let row = event.row { rows.insert(row) }
            default: break
            }
        }
        self.runs = runs.mapValues { $0.sorted { ($0.started, $0.number) < ($1.started, $1.number) } }
        self.rows = rows
        pauses = Self.pauses(recording)
    }

    /// The recorded runs within the window.
    func window(of pipeline: String) -> [RunStatus] {
        (runs[pipeline] ?? []).filter { $0.started >= since && $0.started <= until }
    }

    // MARK: The state at the beginning

    /// Longer than the daemon needs from its start or a firing to the fact of the source.
    static let moment: Int64 = 2_000_000

    /// The last fact of each row before the window. Without one: the first fact in the window, if it is not a change
    /// (it is the daemon's first one, or its signal did not fire), or the fact of a row without changes.
    func factsAtStart() -> [String: String] {
        var facts: [String: String] = [:]
        var changed: Set<String> = []
        var fired: [String: Int64] = [:]
        var started = since
        for event in recording.events {
            guard let row = event.row else { continue }
            if event.kind == .signal {
                fired[row] = event.at
                if row == SignalName.start { started = event.at }
            }
            guard event.kind == .fact, let fact = event.detail else { continue }
            guard event.at > since else {
                facts[row] = fact
                continue
            }
            let isFirst = changed.insert(row).inserted && facts[row] == nil
            let hasFired = fired[row].map { event.at - $0 < Self.moment } ?? false
            let isInitial = event.at - started < Self.moment && event.at >= started
            if isFirst, !hasFired, isInitial || fact.hasPrefix("reachable") { facts[row] = fact }
        }
        for source in recording.sources where facts[source.name] == nil && !changed.contains(source.name) {
            facts[source.name] = source.fact
        }
        return facts
    }

    /// The stored state of a pipeline at the beginning of the window, as far as the recording shows it.
    func stateAtStart(of name: String) -> ReplayStore.Copy {
        let all = runs[name] ?? []
        let earlier = all.filter { $0.started < since }
        let first = all.first { $0.started >= since }
        let last = recording.pipelines.first { $0.name == name }
        var number = earlier.last?.generation
        if earlier.isEmpty {
            // The first run shows which copy there was before it.
            number =
                first.map { $0.outcome == .changed ? ($0.generation ?? 1) - 1 : $0.generation ?? 0 } ?? last?.generation
        }
        var copy = ReplayStore.Copy()
        copy.version = ReplayOrigin.version(
            all.prefix(while: { $0.started < since }).count(where: { $0.outcome == .changed }))
        let check = lastCheck(earlier, first, last)
        if let number, number > 0 {
            copy.generation = CurrentGeneration(
                number: UInt64(number), size: 0, digest: .zero, committedAt: WallTime(microseconds: check ?? since),
                path: name)
        }
        copy.remembered.lastCheck = check.map(WallTime.init(microseconds:))
        copy.remembered.lastRun = UInt64(clamping: earlier.last?.number ?? first.map { max(0, $0.number - 1) } ?? 0)
        return copy
    }

    /// The last successful check before the window. If the recording does not have it, it is assumed so that the first
    /// recorded run has its recorded cause.
    private func lastCheck(_ earlier: [RunStatus], _ first: RunStatus?, _ last: Recording.Pipeline?) -> Int64? {
        if let run = earlier.last(where: { $0.outcome == .changed || $0.outcome == .unchanged }) {
            return run.started + (run.durationUSec ?? 0)
        }
        guard let first else { return last?.lastCheck.flatMap { $0 <= since ? $0 : nil } }
        let had = first.outcome == .changed ? (first.generation ?? 1) > 1 : first.generation != nil
        let startedBefore = recording.events.contains {
            $0.kind == .signal && $0.signal == SignalName.start && $0.at >= since && $0.at <= first.started
        }
        guard had, !startedBefore else { return nil }
        let every = last?.everyUSec ?? 0
        if first.causes.contains(where: { $0.signal == SignalName.timer }) {
            return max(0, min(since, first.started - every))
        }
        return max(0, since - every / 2)
    }

    // MARK: Pauses

    private static func pauses(_ recording: Recording) -> [Pause] {
        var pauses = recording.gaps.map { Pause(from: $0.from, to: $0.to, isSleep: false) }
        for (index, event) in recording.events.enumerated() {
            guard event.kind == .fact, event.row == SignalName.resume, let slept = slept(event.detail) else { continue }
            // The signal may be recorded shortly before its fact.
            let woke =
                recording.events[..<index].suffix(200).last {
                    $0.kind == .signal && $0.signal == SignalName.resume && event.at - $0.at < Self.moment
                }?.at ?? event.at
            pauses.append(Pause(from: max(0, woke - slept), to: woke, isSleep: true))
        }
        var joined: [Pause] = []
        for pause in pauses.sorted(by: { ($0.from, $0.to) < ($1.from, $1.to) }) {
            let from = max(pause.from, joined.last?.to ?? recording.header.since, recording.header.since)
            let to = min(pause.to, recording.header.until)
            if from < to { joined.append(Pause(from: from, to: to, isSleep: pause.isSleep)) }
        }
        return joined
    }

    /// The length of the sleep in a fact such as `awake, after 28800.4 s of sleep`, in microseconds.
    private static func slept(_ fact: String?) -> Int64? {
        let words = (fact ?? "").split(separator: " ")
        guard words.count == 6, words[1] == "after", words[3] == "s", let seconds = Double(words[2]),
            (0..<1e9).contains(seconds)
        else { return nil }
        return Int64(seconds * 1e6)
    }
}

extension ControlEvent {
    /// The row of `Signals` that the event belongs to; nil: none.
    var row: String? { source ?? signal }
}
