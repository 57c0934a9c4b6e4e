import FreshetControl
import FreshetRender

/// What a pipeline heard, what of it was gathered, and what ran: why fourteen signals made two runs.
struct MarbleDiagram: Hashable, Sendable {
    /// What came of a signal.
    enum SignalOutcome: Hashable, Sendable {
        /// The run at this place of the episode was for it.
        case run(Int)
        /// The copy had been checked so short a time before, by the run of this number.
        case fresh(run: Int64, after: Int64)
        /// The run of this number, which was under way, succeeded after it.
        case answered(run: Int64)
        /// Its run is still to come.
        case pending
        /// Its run is still to come, and does not before the pipeline is released.
        case held
        /// The operator asked for a run while it was held, which was refused.
        case refusedHeld
        case unknown
    }

    /// A signal that was heard, or several of one source with one fate that would not be told apart.
    struct Marble: Hashable, Sendable {
        /// As the notation has it: a letter.
        var label: String
        var source: String
        var at: Int64
        /// Of several, that of the last.
        var until: Int64
        var count: Int64
        var detail: String?
        var fate: SignalOutcome
    }

    struct Run: Hashable, Sendable {
        var number: Int64
        var started: Int64
        /// Nil: it is under way.
        var ended: Int64?
        var outcome: RunOutcome?
        var generation: Int64?
        var failure: String?
        /// The run before it, which did not succeed, and for whose signals it runs again.
        var repeats: Int64?
        /// What it waited for since the first of its signals, and how long.
        var waits: [Wait]
    }

    struct Wait: Hashable, Sendable {
        /// Nil: the pipeline was held.
        var reason: WaitingReason?
        var microseconds: Int64
    }

    /// Signals and runs that belong together: before and after them was calm.
    struct Episode: Hashable, Sendable {
        var from: Int64
        var to: Int64
        /// In the order in which they were heard.
        var marbles: [Marble]
        var runs: [Run]

        /// How many signals were heard.
        var heard: Int64 { marbles.reduce(0) { $0 + $1.count } }
    }

    var name: String
    /// How it gathers, such as `quiet 2s`.
    var terms: [String]
    var freshForUSec: Int64?
    /// Oldest first.
    var episodes: [Episode]
    var notes: [String]

    static let mostEvents = 4_096

    /// As many names as the notation has letters: `x` is a failure there.
    static let labels = "abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWYZ".map(String.init)

    /// - Parameters:
    ///   - history: of this pipeline.
    ///   - most: how many episodes are kept, the last ones.
    ///   - status: nil: nothing is known of the present.
    init(_ description: PipelineDescription, _ history: RecentHistory, status: PipelineStatus?, most: Int) {
        // As many as the daemon itself remembers: nobody looks at more, and each is looked for among the others.
        var history = history
        let left = history.events.count - Self.mostEvents
        if left > 0 {
            history.events.removeFirst(left)
            history.notes.append("Of the events the last \(Self.mostEvents) are looked at.")
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
        var heard = Self.heard(description, history)
        Self.assign(&heard, &runs, parts.compactMap(\.run), Self.places(of: history.events))
        Self.explain(&heard, runs, parts, description, status)
        for index in runs.indices {
            var first = heard.filter { $0.run == index }.map(\.at).min() ?? runs[index].started
            // A further attempt waits from the end of the one before.
            if runs[index].repeats != nil, index > 0, let ended = runs[index - 1].ended { first = min(first, ended) }
            runs[index].waits = Self.waits(parts, from: first, to: runs[index].started)
        }
        // What comes this soon belongs together.
        let gap = max(5_000_000, 2 * (description.quietUSec ?? 0))
        episodes = Array(Self.episodes(heard, runs, gap: gap, until: history.until).suffix(most))
    }

    // MARK: What was heard

    /// A signal on its way to a marble.
    private struct PendingSignal {
        var signal: String
        var source: String
        var at: Int64
        /// Of several, when the last one was.
        var until: Int64
        /// Where among the events it was told; nil: nowhere.
        var place: Int?
        /// It is this pipeline's alone: what its timer, its parameters and the operator ask for.
        var isOwn = false
        var number: Int64?
        var count: Int64 = 1
        var detail: String?
        /// The run that was for it, by its place among all runs.
        var run: Int?
        var fate = SignalOutcome.unknown
    }

    private static func heard(_ description: PipelineDescription, _ history: RecentHistory) -> [PendingSignal] {
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

    /// Where among the events each run begins.
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

    /// How far an occurrence's instant and that of its event may lie apart: they are read from two clocks.
    private static let tolerance: Int64 = 100_000

    /// Gives each signal to the run that names it among its causes. A cause of which no event is known becomes one.
    ///
    /// - Parameters:
    ///   - statuses: of each run.
    ///   - places: where among the events each run begins.
    private static func assign(
        _ heard: inout [PendingSignal], _ runs: inout [Run], _ statuses: [RunStatus], _ places: [RunStatus: Int]
    ) {
        // Each event is looked at for the causes of its own signal.
        var bySignal: [String: [Int]] = [:]
        for (index, signal) in heard.enumerated() { bySignal[signal.signal, default: []].append(index) }
        for (index, status) in statuses.enumerated() {
            for cause in status.causes {
                // A run that does not succeed leaves its causes to the next one: of those that one heard nothing new.
                let inherited =
                    index > 0 && !runs[index - 1].hasSucceeded
                    ? statuses[index - 1].causes.first {
                        $0.signal == cause.signal && abs($0.first - cause.first) <= tolerance
                    } : nil
                if inherited != nil { runs[index].repeats = runs[index - 1].number }
                let count = cause.count - (inherited?.count ?? 0)
                guard count > 0 || inherited == nil else { continue }
                let earlier = (bySignal[cause.signal] ?? []).filter {
                    heard[$0].run == nil && wasTold(heard[$0], before: status, beginning: places[status])
                }
                // Numbers begin anew with each daemon: of those with this number the last is meant.
                let named = cause.number.flatMap { number in earlier.last { heard[$0].number == number } }
                let free = earlier.filter { $0 == named || belongs(heard[$0], to: cause, of: status) }
                // What the run knew last is certain; the others are those that came nearest before it.
                let chosen = free.sorted { one, other in
                    if one == named || other == named { return one == named && other != named }
                    return abs(heard[one].at - cause.last) < abs(heard[other].at - cause.last)
                }.prefix(Int(clamping: max(1, count))).sorted()
                for place in chosen { heard[place].run = index }
                if let first = chosen.first, let last = chosen.last {
                    let rest = count - Int64(chosen.count)
                    // Of what was set while it was quiet there is one event, when it was quiet: they were set before.
                    guard cause.signal == Self.gathersItself, heard[last].isOwn else { continue }
                    if rest > 0 { heard[last].count += rest }
                    heard[last].until = min(heard[last].at, cause.last)
                    if inherited == nil { heard[first].at = min(heard[first].at, cause.first) }
                    if first != last || inherited != nil { heard[last].at = heard[last].until }
                } else {
                    let at = min(cause.last, runs[index].started)
                    heard.append(
                        PendingSignal(
                            signal: cause.signal, source: cause.signal, at: at, until: at, count: max(1, count),
                            detail: cause.detail, run: index))
                }
            }
        }
        heard.sort { $0.at < $1.at }
    }

    /// The signal that waits for a calm of its own before it is told.
    private static let gathersItself = "parameter"

    /// What was told after a run began was none of its causes.
    private static func wasTold(_ heard: PendingSignal, before run: RunStatus, beginning: Int?) -> Bool {
        if let beginning, let place = heard.place { return place < beginning }
        return heard.at <= run.started + tolerance
    }

    /// Whether a cause of a run may be what an event before it tells.
    private static func belongs(_ heard: PendingSignal, to cause: CauseStatus, of run: RunStatus) -> Bool {
        // What is heard by this pipeline alone is told by itself: a timer that was due in a sleep when that is over, a
        // parameter when it was quiet for long enough, and the operator before the pipeline knows. Only what is older
        // than the cause is another one, unless the cause's own instants are not known.
        if heard.isOwn { return cause.first >= run.started || heard.at >= cause.first - tolerance }
        return heard.at >= cause.first - tolerance && heard.at <= cause.last + tolerance
    }

    private static let environment: Set<String> = ["start", "network", "resume", "foreground", "timer"]

    /// Says of those without a run why they have none.
    private static func explain(
        _ heard: inout [PendingSignal], _ runs: [Run], _ parts: [Timeline.Part], _ description: PipelineDescription,
        _ status: PipelineStatus?
    ) {
        let successes = runs.filter(\.hasSucceeded)
        let lastStart = runs.map(\.started).max()
        let holds = parts.filter { $0.kind == .held }
        for index in heard.indices where heard[index].run == nil {
            let at = heard[index].at
            let before = successes.last { ($0.ended ?? .max) <= at }
            if let during = successes.first(where: { $0.started <= at && at <= ($0.ended ?? .max) }) {
                heard[index].fate = .answered(run: during.number)
            } else if heard[index].signal == "operator", holds.contains(where: { $0.from <= at && at <= $0.to }) {
                heard[index].fate = .refusedHeld
            } else if environment.contains(heard[index].signal), let before, let ended = before.ended,
                let span = description.freshForUSec, at - ended < span
            {
                heard[index].fate = .fresh(run: before.number, after: at - ended)
            } else if let later = successes.first(where: { $0.started >= at }),
                environment.contains(heard[index].signal)
            {
                heard[index].fate = .answered(run: later.number)
            } else if let lastStart, at <= lastStart {
                // A run takes along all that was heard before it: this is not among what is still to come.
            } else if status?.state == .held {
                heard[index].fate = .held
            } else if status?.state == .waiting || status?.state == .loading {
                heard[index].fate = .pending
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
            // A storm that goes on is one wait, however often its end was put off.
            if let place = waits.firstIndex(where: { $0.reason == reason }) {
                waits[place].microseconds += length
            } else {
                waits.append(Wait(reason: reason, microseconds: length))
            }
        }
        // What took no time worth telling was no wait.
        return waits.filter { $0.microseconds >= 10_000 }
    }

    // MARK: Episodes

    private static func episodes(_ heard: [PendingSignal], _ runs: [Run], gap: Int64, until: Int64) -> [Episode] {
        struct TimeRange {
            var from: Int64
            var to: Int64
        }
        var stretches = runs.enumerated().map { index, run in
            let first = heard.filter { $0.run == index }.map(\.at).min() ?? run.started
            return TimeRange(from: min(first, run.started), to: run.ended ?? until)
        }
        stretches += heard.filter { $0.run == nil }.map { TimeRange(from: $0.at, to: $0.at) }
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
            var here = heard.filter { $0.at >= stretch.from && $0.at <= stretch.to }
            for index in here.indices {
                if let run = here[index].run, let place = places[run] { here[index].fate = .run(place) }
            }
            return Episode(
                from: stretch.from, to: stretch.to, marbles: marbles(here), runs: own.map { runs[$0] })
        }
    }

    private static func marbles(_ heard: [PendingSignal]) -> [Marble] {
        var marbles: [Marble] = heard.map {
            Marble(
                label: "", source: $0.source, at: $0.at, until: max($0.at, $0.until), count: $0.count,
                detail: $0.detail, fate: $0.fate)
        }
        if marbles.count > labels.count {
            // More than there are letters: those of one source for one run are one, at the time of the first.
            var together: [Marble] = []
            for marble in marbles {
                if let place = together.lastIndex(where: { $0.source == marble.source && isSame($0.fate, marble.fate) })
                {
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
    /// What it was for is done with.
    fileprivate var hasSucceeded: Bool { outcome == .changed || outcome == .unchanged }

    fileprivate init(_ run: RunStatus, _ part: Timeline.Part) {
        let isOver: Bool = if case .run(nil) = part.kind { false } else { true }
        self.init(
            number: run.number, started: part.from, ended: isOver ? part.to : nil, outcome: run.outcome,
            generation: run.generation, failure: run.failure, waits: [])
    }
}
