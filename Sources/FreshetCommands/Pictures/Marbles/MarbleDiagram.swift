import FreshetControl
import FreshetRender

/// The signals of a pipeline, the groups in which they were gathered, and the runs that followed.
struct MarbleDiagram: Hashable, Sendable {
    /// The outcome of a signal.
    enum SignalOutcome: Hashable, Sendable {
        /// It caused the run at this index of the episode.
        case run(Int)
        /// Ignored by `fresh-for`: this run had checked the copy a short time before.
        case fresh(run: Int64, after: Int64)
        /// This run was in progress, and succeeded after the signal.
        case answered(run: Int64)
        /// Its run has not started yet.
        case pending
        /// Its run starts when the pipeline is released.
        case held
        /// A request of the operator, refused because the pipeline was held.
        case refusedWhileHeld
        case unknown
    }

    /// A signal, or several signals of one source with the same outcome that are drawn as one.
    struct Marble: Hashable, Sendable {
        /// The letter in the notation.
        var label: String
        var source: String
        var at: Int64
        /// The instant of the last signal.
        var until: Int64
        var count: Int64
        var detail: String?
        var outcome: SignalOutcome
    }

    struct Run: Hashable, Sendable {
        var number: Int64
        var started: Int64
        /// Nil while the run is in progress.
        var ended: Int64?
        var outcome: RunOutcome?
        var generation: Int64?
        var failure: String?
        /// The failed run before it whose signals it takes over.
        var repeats: Int64?
        /// The waits between its first signal and its start.
        var waits: [Wait]
    }

    struct Wait: Hashable, Sendable {
        /// Nil if the pipeline was held.
        var reason: WaitingReason?
        var microseconds: Int64
    }

    /// Signals and runs that belong together, with a quiet time before and after them.
    struct Episode: Hashable, Sendable {
        var from: Int64
        var to: Int64
        /// In the order of their instants.
        var marbles: [Marble]
        var runs: [Run]

        /// The number of signals.
        var received: Int64 { marbles.reduce(0) { $0 + $1.count } }
    }

    var name: String
    /// The keys that control how signals are gathered, such as `quiet 2s`.
    var terms: [String]
    var freshForUSec: Int64?
    /// Oldest first.
    var episodes: [Episode]
    var notes: [String]

    static let mostEvents = 4_096

    /// The letters of the notation, without `x`, which marks a failure.
    static let labels = "abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWYZ".map(String.init)

    /// - Parameters:
    ///   - history: the events of this pipeline.
    ///   - status: the present status; nil if it is unknown.
    ///   - most: the number of episodes, the last ones.
    init(_ description: PipelineDescription, _ history: RecentHistory, status: PipelineStatus?, most: Int) {
        // At most as many events as the daemon keeps: each is searched among the others.
        var history = history
        let left = history.events.count - Self.mostEvents
        if left > 0 {
            history.events.removeFirst(left)
            history.notes.append("Only the last \(Self.mostEvents) events are shown.")
        }
        name = description.name
        freshForUSec = description.freshForUSec
        terms = [
            ("quiet", description.quietUSec), ("at-most", description.atMostUSec),
            ("fresh-for", description.freshForUSec),
        ].compactMap { name, span in span.flatMap { $0 > 0 ? "\(name) \(TimeText.setting($0))" : nil } }
        notes = history.notes
        let lane = Timeline(history, [description], isChosen: true).pipelines.first { $0.name == description.name }
        let parts = lane?.parts ?? []
        var runs = parts.compactMap { part in part.run.map { Run($0, part) } }
        var received = Self.received(description, history)
        Self.assign(&received, &runs, parts.compactMap(\.run), Self.places(of: history.events))
        Self.explain(&received, runs, parts, description, status)
        for index in runs.indices {
            var first = received.filter { $0.run == index }.map(\.at).min() ?? runs[index].started
            // A retry waits from the end of the attempt before it.
            if runs[index].repeats != nil, index > 0, let ended = runs[index - 1].ended { first = min(first, ended) }
            runs[index].waits = Self.waits(parts, from: first, to: runs[index].started)
        }
        // Events with a shorter distance belong to one episode.
        let gap = max(5_000_000, 2 * (description.quietUSec ?? 0))
        episodes = Array(Self.episodes(received, runs, gap: gap, until: history.until).suffix(most))
    }

    // MARK: Signals

    /// A signal before it becomes a marble.
    private struct PendingSignal {
        var signal: String
        var source: String
        var at: Int64
        /// The instant of the last of several signals.
        var until: Int64
        /// The index of its event; nil if there is no event.
        var place: Int?
        /// Whether it fired for this pipeline only: its timer, its parameters or the operator.
        var isOwn = false
        var number: Int64?
        var count: Int64 = 1
        var detail: String?
        /// The index of the run that it caused.
        var run: Int?
        var outcome = SignalOutcome.unknown
    }

    private static func received(_ description: PipelineDescription, _ history: RecentHistory) -> [PendingSignal] {
        let sources = Set(description.signals)
        return history.events.enumerated().compactMap { place, event in
            guard event.kind == .signal, event.at >= history.since, let signal = event.signal else { return nil }
            let source = event.source ?? signal
            guard event.pipeline == description.name || event.pipeline == nil && sources.contains(source) else {
                return nil
            }
            return PendingSignal(
                signal: signal, source: source, at: event.at, until: event.at, place: place,
                isOwn: event.pipeline != nil, number: event.number, detail: event.detail)
        }
    }

    /// The index of the event with which each run begins.
    private static func places(of events: [ControlEvent]) -> [RunStatus: Int] {
        var places: [RunStatus: Int] = [:]
        var begun: [Int64: Int] = [:]
        for (place, event) in events.enumerated() {
            guard let run = event.run else { continue }
            if event.kind == .runStarted {
                begun[run.number] = place
                places[run] = place
            } else if event.kind == .runEnded, let begin = begun.removeValue(forKey: run.number) {
                places[run] = begin
            }
        }
        return places
    }

    /// The largest distance between the instants of an occurrence and its event, in microseconds: they come from two
    /// clocks.
    private static let tolerance: Int64 = 100_000

    /// Assigns each signal to the run that has it as a cause. A cause without an event becomes a signal.
    ///
    /// - Parameters:
    ///   - statuses: the status of each run.
    ///   - places: the index of the event with which each run begins.
    private static func assign(
        _ received: inout [PendingSignal], _ runs: inout [Run], _ statuses: [RunStatus], _ places: [RunStatus: Int]
    ) {
        // Indexed by signal, so that each cause is compared only with events of its signal.
        var bySignal: [String: [Int]] = [:]
        for (index, signal) in received.enumerated() { bySignal[signal.signal, default: []].append(index) }
        for (index, status) in statuses.enumerated() {
            for cause in status.causes {
                // A failed run leaves its causes to the next run: that run received no new signal for them.
                let inherited =
                    index > 0 && !runs[index - 1].hasSucceeded
                    ? statuses[index - 1].causes.first {
                        $0.signal == cause.signal && abs($0.first - cause.first) <= tolerance
                    } : nil
                if inherited != nil { runs[index].repeats = runs[index - 1].number }
                let count = cause.count - (inherited?.count ?? 0)
                guard count > 0 || inherited == nil else { continue }
                let earlier = (bySignal[cause.signal] ?? []).filter {
                    received[$0].run == nil && wasPublished(received[$0], before: status, beginning: places[status])
                }
                // Numbers start at 1 with each daemon: the last signal with the number is the right one.
                let named = cause.number.flatMap { number in earlier.last { received[$0].number == number } }
                let free = earlier.filter { $0 == named || belongs(received[$0], to: cause, of: status) }
                // The last signal of the cause is known by its number; the others are the nearest in time.
                let chosen = free.sorted { one, other in
                    if one == named || other == named { return one == named && other != named }
                    return abs(received[one].at - cause.last) < abs(received[other].at - cause.last)
                }.prefix(Int(clamping: max(1, count))).sorted()
                for place in chosen { received[place].run = index }
                if let first = chosen.first, let last = chosen.last {
                    let rest = count - Int64(chosen.count)
                    // Several settings of parameters have one event, after their quiet period: they were set before it.
                    guard cause.signal == Self.selfGathered, received[last].isOwn else { continue }
                    if rest > 0 { received[last].count += rest }
                    received[last].until = min(received[last].at, cause.last)
                    if inherited == nil { received[first].at = min(received[first].at, cause.first) }
                    if first != last || inherited != nil { received[last].at = received[last].until }
                } else {
                    let at = min(cause.last, runs[index].started)
                    received.append(
                        PendingSignal(
                            signal: cause.signal, source: cause.signal, at: at, until: at, count: max(1, count),
                            detail: cause.detail, run: index))
                }
            }
        }
        received.sort { $0.at < $1.at }
    }

    /// The signal with its own quiet period.
    private static let selfGathered = "parameter"

    /// Whether the signal was published before the run began: otherwise it cannot be a cause.
    private static func wasPublished(_ received: PendingSignal, before run: RunStatus, beginning: Int?) -> Bool {
        if let beginning, let place = received.place { return place < beginning }
        return received.at <= run.started + tolerance
    }

    /// Whether a signal may belong to the cause of a run.
    private static func belongs(_ received: PendingSignal, to cause: CauseStatus, of run: RunStatus) -> Bool {
        // The event of a signal for this pipeline only can be later than the cause: a timer that was due during a sleep
        // fires after it, a parameter after its quiet period. Only an older signal is a different one, unless the
        // instants of the cause are unknown.
        if received.isOwn { return cause.first >= run.started || received.at >= cause.first - tolerance }
        return received.at >= cause.first - tolerance && received.at <= cause.last + tolerance
    }

    private static let environment: Set<String> = ["start", "network", "resume", "foreground", "metered", "timer"]

    /// Finds out why a signal has no run.
    private static func explain(
        _ received: inout [PendingSignal], _ runs: [Run], _ parts: [Timeline.Part], _ description: PipelineDescription,
        _ status: PipelineStatus?
    ) {
        let successes = runs.filter(\.hasSucceeded)
        let lastStart = runs.map(\.started).max()
        let holds = parts.filter { $0.kind == .held }
        for index in received.indices where received[index].run == nil {
            let at = received[index].at
            let before = successes.last { ($0.ended ?? .max) <= at }
            if let during = successes.first(where: { $0.started <= at && at <= ($0.ended ?? .max) }) {
                received[index].outcome = .answered(run: during.number)
            } else if received[index].signal == "operator", holds.contains(where: { $0.from <= at && at <= $0.to }) {
                received[index].outcome = .refusedWhileHeld
            } else if environment.contains(received[index].signal), let before, let ended = before.ended,
                let span = description.freshForUSec, at - ended < span
            {
                received[index].outcome = .fresh(run: before.number, after: at - ended)
            } else if let later = successes.first(where: { $0.started >= at }),
                environment.contains(received[index].signal)
            {
                received[index].outcome = .answered(run: later.number)
            } else if let lastStart, at <= lastStart {
                // A run takes all signals before it, so this signal is not pending.
            } else if status?.state == .held {
                received[index].outcome = .held
            } else if status?.state == .waiting || status?.state == .loading {
                received[index].outcome = .pending
            }
        }
    }

    private static func waits(_ parts: [Timeline.Part], from: Int64, to: Int64) -> [Wait] {
        var waits: [Wait] = []
        for part in parts {
            let reason: WaitingReason?
            switch part.kind {
            case .waiting(let what): reason = what
            case .held: reason = nil
            case .run: continue
            }
            guard part.to > from, part.from < to else { continue }
            let length = min(part.to, to) - max(part.from, from)
            // A burst that is extended is one wait.
            if let place = waits.firstIndex(where: { $0.reason == reason }) {
                waits[place].microseconds += length
            } else {
                waits.append(Wait(reason: reason, microseconds: length))
            }
        }
        // Waits of less than 10 ms are not shown.
        return waits.filter { $0.microseconds >= 10_000 }
    }

    // MARK: Episodes

    private static func episodes(_ received: [PendingSignal], _ runs: [Run], gap: Int64, until: Int64) -> [Episode] {
        struct TimeRange {
            var from: Int64
            var to: Int64
        }
        var stretches = runs.enumerated().map { index, run in
            let first = received.filter { $0.run == index }.map(\.at).min() ?? run.started
            return TimeRange(from: min(first, run.started), to: run.ended ?? until)
        }
        stretches += received.filter { $0.run == nil }.map { TimeRange(from: $0.at, to: $0.at) }
        stretches.sort { ($0.from, $0.to) < ($1.from, $1.to) }
        var merged: [TimeRange] = []
        for stretch in stretches {
            if let last = merged.last, stretch.from - last.to <= gap {
                merged[merged.count - 1].to = max(last.to, stretch.to)
            } else {
                merged.append(stretch)
            }
        }
        return merged.map { stretch in
            let own = runs.indices.filter { runs[$0].started >= stretch.from && runs[$0].started <= stretch.to }
            let places = Dictionary(uniqueKeysWithValues: own.enumerated().map { ($1, $0) })
            var here = received.filter { $0.at >= stretch.from && $0.at <= stretch.to }
            for index in here.indices {
                if let run = here[index].run, let place = places[run] { here[index].outcome = .run(place) }
            }
            return Episode(
                from: stretch.from, to: stretch.to, marbles: marbles(here), runs: own.map { runs[$0] })
        }
    }

    private static func marbles(_ received: [PendingSignal]) -> [Marble] {
        var marbles: [Marble] = received.map {
            Marble(
                label: "", source: $0.source, at: $0.at, until: max($0.at, $0.until), count: $0.count,
                detail: $0.detail, outcome: $0.outcome)
        }
        if marbles.count > labels.count {
            // More marbles than letters: signals of one source with one outcome become one marble, at the first
            // instant.
            var together: [Marble] = []
            for marble in marbles {
                if let place = together.lastIndex(where: {
                    $0.source == marble.source && isSame($0.outcome, marble.outcome)
                }) {
                    together[place].count += marble.count
                    together[place].until = max(together[place].until, marble.until)
                } else {
                    together.append(marble)
                }
            }
            marbles = together
        }
        for index in marbles.indices {
            marbles[index].label = index < labels.count ? labels[index] : "\(index + 1)"
        }
        return marbles
    }

    private static func isSame(_ one: SignalOutcome, _ other: SignalOutcome) -> Bool {
        if case .fresh(let first, _) = one, case .fresh(let second, _) = other { return first == second }
        return one == other
    }
}

extension MarbleDiagram.Run {
    /// Whether the run has answered its signals.
    fileprivate var hasSucceeded: Bool { outcome == .changed || outcome == .unchanged }

    fileprivate init(_ run: RunStatus, _ part: Timeline.Part) {
        let isOver: Bool = if case .run(nil) = part.kind { false } else { true }
        self.init(
            number: run.number, started: part.from, ended: isOver ? part.to : nil, outcome: run.outcome,
            generation: run.generation, failure: run.failure, waits: [])
    }
}
