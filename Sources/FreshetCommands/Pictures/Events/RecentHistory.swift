import FreshetControl
import FreshetRender
import FreshetVarlink

/// What has happened between two instants, as far as anybody remembers it: the daemon, and for what is older the journal.
struct RecentHistory: Hashable, Sendable {
    /// Oldest first. Those before `since` are there as well, where the daemon remembers them: they say how things were.
    var events: [ControlEvent]
    var since: Int64
    var until: Int64
    /// When nobody looked, since there was no daemon, or what it saw was forgotten.
    var unseen: [TimeRange] = []
    /// What whoever reads a picture of it has to know.
    var notes: [String] = []

    /// A length of time, in microseconds since 1970.
    struct TimeRange: Hashable, Sendable {
        var from: Int64
        var to: Int64
    }

    /// The instants that a command asks for.
    struct Window: Hashable, Sendable {
        var since: Int64
        var until: Int64
    }

    /// Asks the daemon, and the journal for what is older than the daemon's memory.
    ///
    /// - Parameters:
    ///   - names: of pipelines, or patterns; nil: all.
    ///   - reachesBack: whether the journal is asked at all.
    static func read(
        _ names: [String]?, _ window: Window, reachesBack: Bool = true, _ client: ControlClient, _ session: Session
    ) throws(CommandFailure) -> RecentHistory {
        let (recent, daemon) = try session.asking { () throws(ControlClient.Failure) in
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
                    ? "The daemon began at \(time); what was before is not known here."
                    : "The daemon remembers what was since \(time); what was before is not known here."
            ]
        }
        return history
    }
}

/// What the journal says of a daemon's past.
struct JournalHistory: Hashable, Sendable {
    var events: [ControlEvent] = []
    var notes: [String] = []
    /// When the daemon began and stopped, oldest first.
    private var turns: [Turn] = []
    private var since: Int64
    /// What was before the first line that was read is not known; nil: all was read.
    private(set) var knownFrom: Int64?
    private var isUnread = false

    private struct Turn: Hashable, Sendable {
        var at: Int64
        var isBeginning: Bool
    }

    /// More lines than that are not read: the newest are.
    static let mostLines = 50_000

    init(since: Int64) { self.since = since }

    /// It could not be read.
    ///
    /// - Parameter talk: what journalctl says of that.
    init(since: Int64, unread talk: String) {
        self.init(since: since)
        isUnread = true
        if talk.contains("not seeing messages") || talk.contains("permission") {
            notes = ["You may not read the journal; be root, or in the group systemd-journal or adm."]
        } else {
            let reason = talk.split(separator: "\n").first.map { ": \(DisplayText.harmless(String($0)))" } ?? ""
            notes = ["The journal could not be read\(reason)"]
        }
    }

    /// Nil: there is no journal in which this daemon's lines could be.
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
        guard case .ended(let status, let output, let talk) = session.context.child(journalctl, arguments, .collected)
        else { return nil }
        // Not quiet, for what it says of rights; then it also says that there is no line.
        guard !output.hasPrefix("{"), status != 0 || !talk.isEmpty else {
            return JournalHistory(lines: output, window, names)
        }
        // Of what was not read nothing is said but why.
        return JournalHistory(since: window.since, unread: talk)
    }

    /// - Parameters:
    ///   - lines: as `journalctl --output=json` prints them.
    ///   - most: how many were asked for: if there are so many, older ones may be missing.
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
            case .ready: turns.append(Turn(at: line.at, isBeginning: true))
            case .stopped: turns.append(Turn(at: line.at, isBeginning: false))
            case .fired, .unchanged, .waiting, .runStarted: isDetailed = true
            default: break
            }
            for event in line.events {
                if let patterns, let pipeline = event.pipeline, !patterns.contains(where: { $0.matches(pipeline) }) {
                    continue
                }
                // A run that did not succeed in all its branches has two lines.
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
                "From the journal, where at the level info there are neither waits, nor checks that found nothing new, "
                    + "nor each firing.")
        }
        guard count >= most else { return }
        notes.append("Of the journal the last \(most) lines were read.")
        knownFrom = firstLine
    }

    private struct RunName: Hashable {
        var pipeline: String
        var number: Int64
        /// In minutes: a daemon that lost its index counts anew.
        var started: Int64
    }

    /// At the level debug an occurrence has a line of its own beside that of its fact.
    private static func withoutRepetitions(_ events: [ControlEvent]) -> [ControlEvent] {
        // By the signal and the second: as many as there are lines, and no more are looked at for one.
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

    /// - Parameters:
    ///   - last: from when on the daemon remembers by itself.
    ///   - end: when the daemon that runs began, if all that it saw since is known from itself.
    func unseen(before last: Int64, until end: Int64?) -> [RecentHistory.TimeRange] {
        if isUnread { return last > since ? [.init(from: since, to: last)] : [] }
        var stretches: [RecentHistory.TimeRange] = []
        if let knownFrom { stretches.append(.init(from: since, to: knownFrom)) }
        // Before the first line nothing is known, but if that is the daemon's first, there was none.
        var gone: Int64? =
            turns.first?.isBeginning == true || turns.isEmpty && events.isEmpty ? knownFrom ?? since : nil
        for turn in turns {
            if turn.isBeginning, let from = gone { stretches.append(.init(from: from, to: turn.at)) }
            gone = turn.isBeginning ? nil : turn.at
        }
        if let from = gone, let end, end > from { stretches.append(.init(from: from, to: end)) }
        return stretches
    }
}
