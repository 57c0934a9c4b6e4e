import FreshetControl
import FreshetRender
import FreshetVarlink

/// The events between two instants: from the daemon, and before its memory from the journal.
struct RecentHistory: Hashable, Sendable {
    /// The events, oldest first. Events of the daemon before `since` are included: they give the state at `since`.
    var events: [ControlEvent]
    var since: Int64
    var until: Int64
    /// The ranges without known events: no daemon ran, or its events are lost.
    var unseen: [TimeRange] = []
    /// Notes for the reader of a picture.
    var notes: [String] = []

    /// A range of time, in microseconds since 1970.
    struct TimeRange: Hashable, Sendable {
        var from: Int64
        var to: Int64
    }

    /// The window that a command shows.
    struct Window: Hashable, Sendable {
        var since: Int64
        var until: Int64
    }

    /// Reads the events from the daemon, and older events from the journal.
    ///
    /// - Parameters:
    ///   - names: pipelines, or patterns; nil for all.
    ///   - reachesBack: whether the journal is read.
    static func read(
        _ names: [String]?, _ window: Window, reachesBack: Bool = true, _ client: ControlClient, _ session: Session
    ) throws(CommandFailure) -> RecentHistory {
        let (recent, daemon) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.recentEvents(names), try client.daemon())
        }
        var history = RecentHistory(
            events: recent.events.filter { $0.at <= window.until }, since: window.since, until: window.until)
        guard recent.completeSince > window.since else { return history }
        let end = min(recent.completeSince, window.until)
        let isWhole = recent.completeSince <= daemon.since
        if reachesBack, let older = JournalHistory.read(names, .init(since: window.since, until: end), session) {
            history.events = older.events + history.events.filter { $0.at >= recent.completeSince }
            history.notes = older.notes
            history.unseen = older.unseen(before: end, until: isWhole ? daemon.since : nil)
        } else {
            history.unseen = [TimeRange(from: window.since, to: end)]
            let time = session.times.absolute(recent.completeSince)
            history.notes = [
                isWhole
                    ? "The daemon started at \(time); earlier events are unknown."
                    : "The daemon keeps the events since \(time); earlier events are unknown."
            ]
        }
        return history
    }
}

/// The events in the journal, from earlier daemons or before the daemon's memory.
struct JournalHistory: Hashable, Sendable {
    var events: [ControlEvent] = []
    var notes: [String] = []
    /// The starts and stops of the daemon, oldest first.
    private var lifecycle: [LifecycleEvent] = []
    private var since: Int64
    /// The first line that was read, if older lines may be missing; nil if all lines were read.
    private(set) var knownFrom: Int64?
    private var isUnread = false

    private struct LifecycleEvent: Hashable, Sendable {
        var at: Int64
        var isStart: Bool
    }

    /// The most lines that are read, the newest.
    static let mostLines = 50_000

    init(since: Int64) { self.since = since }

    /// A journal that could not be read.
    ///
    /// - Parameter errorOutput: the standard error of journalctl.
    init(since: Int64, unread errorOutput: String) {
        self.init(since: since)
        isUnread = true
        if errorOutput.contains("not seeing messages") || errorOutput.contains("permission") {
            notes = [Journal.permissionDenied]
        } else {
            let reason = errorOutput.split(separator: "\n").first.map { ": \(DisplayText.harmless(String($0)))" } ?? ""
            notes = ["The journal could not be read\(reason)"]
        }
    }

    /// Nil if the log of this daemon is not in a journal.
    static func read(
        _ names: [String]?, _ window: RecentHistory.Window, _ session: Session
    ) -> JournalHistory? {
        guard let isPersonal = session.isPersonalDaemon, let journalctl = session.context.program("journalctl") else {
            return nil
        }
        let arguments =
            [
                "--no-pager", "--output=json", "--lines=\(mostLines)",
                "--output-fields=" + JournalLine.fields.joined(separator: ","),
                "--since=@\(window.since / 1_000_000)", "--until=@\(window.until / 1_000_000 + 1)",
            ] + Journal.matches([], isPersonal: isPersonal)
            + JournalLine.Message.allCases.map { "MESSAGE_ID=\($0.rawValue)" }
        guard
            case .ended(let status, let output, let errorOutput) = session.context.child(
                journalctl, arguments, .collected)
        else { return nil }
        // journalctl runs without --quiet, so that it reports missing permissions; it also reports that there are no
        // lines.
        guard !output.hasPrefix("{"), status != 0 || !errorOutput.isEmpty else {
            return JournalHistory(lines: output, window, names)
        }
        return JournalHistory(since: window.since, unread: errorOutput)
    }

    /// - Parameters:
    ///   - lines: the output of `journalctl --output=json`.
    ///   - most: the number of requested lines: if there are as many, older lines may be missing.
    init(lines: String, _ window: RecentHistory.Window, _ names: [String]?, most: Int = Self.mostLines) {
        self.init(since: window.since)
        var count = 0
        var firstLine: Int64?
        var isDetailed = false
        var ended: Set<RunName> = []
        let patterns = names.map { $0.map(GlobPattern.init) }
        for text in lines.split(separator: "\n") {
            count += 1
            guard let line = JournalLine(json: text), line.at >= window.since, line.at < window.until else { continue }
            if firstLine == nil { firstLine = line.at }
            switch line.message {
            case .ready: lifecycle.append(LifecycleEvent(at: line.at, isStart: true))
            case .stopped: lifecycle.append(LifecycleEvent(at: line.at, isStart: false))
            case .fired, .unchanged, .waiting, .runStarted: isDetailed = true
            default: break
            }
            for event in line.events {
                if let patterns, let pipeline = event.pipeline, !patterns.contains(where: { $0.matches(pipeline) }) {
                    continue
                }
                // A run with failed branches has two lines.
                if event.kind == .runEnded, let run = event.run, let pipeline = event.pipeline,
                    !ended.insert(RunName(pipeline: pipeline, number: run.number, started: run.started / 60_000_000))
                        .inserted
                {
                    continue
                }
                events.append(event)
            }
        }
        events = Self.withoutRepetitions(events)
        if !isDetailed {
            notes.append(
                "Read from the journal: at log level info it has no waits, no unchanged runs and not every firing.")
        }
        guard count >= most else { return }
        notes.append("Only the last \(most) lines of the journal were read.")
        knownFrom = firstLine
    }

    private struct RunName: Hashable {
        var pipeline: String
        var number: Int64
        /// In minutes: a daemon that lost its index starts again at run 1.
        var started: Int64
    }

    /// Removes the firings that are known from a fact if the firing has its own line, as at log level debug.
    private static func withoutRepetitions(_ events: [ControlEvent]) -> [ControlEvent] {
        // Indexed by signal and second, so that the search is linear in the number of lines.
        var numbered: [String: [Int64: [Int64]]] = [:]
        for event in events where event.kind == .signal && event.number != nil {
            numbered[event.signal ?? "", default: [:]][event.at / 1_000_000, default: []].append(event.at)
        }
        return events.filter { event in
            guard event.kind == .signal, event.number == nil, let seconds = numbered[event.signal ?? ""] else {
                return true
            }
            let second = event.at / 1_000_000
            return !(second - 2...second + 2).contains { around in
                seconds[around]?.contains { abs($0 - event.at) < 2_000_000 } ?? false
            }
        }
    }

    /// The ranges without known events.
    ///
    /// - Parameters:
    ///   - last: the beginning of the daemon's own events.
    ///   - end: the start of the running daemon, if its own events are complete.
    func unseen(before last: Int64, until end: Int64?) -> [RecentHistory.TimeRange] {
        if isUnread { return last > since ? [.init(from: since, to: last)] : [] }
        var stretches: [RecentHistory.TimeRange] = []
        if let knownFrom { stretches.append(.init(from: since, to: knownFrom)) }
        // If the first line is the start of a daemon, no daemon ran before it.
        var gone: Int64? =
            lifecycle.first?.isStart == true || lifecycle.isEmpty && events.isEmpty ? knownFrom ?? since : nil
        for event in lifecycle {
            if event.isStart, let from = gone { stretches.append(.init(from: from, to: event.at)) }
            gone = event.isStart ? nil : event.at
        }
        if let from = gone, let end, end > from { stretches.append(.init(from: from, to: end)) }
        return stretches
    }
}
