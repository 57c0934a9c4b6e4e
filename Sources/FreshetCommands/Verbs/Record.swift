import ArgumentParser
import FreshetControl
import FreshetRender

struct Record: Verb {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Record signals, facts and runs for a replay.",
        discussion: """
            Writes what the daemon saw: signals and facts with their times, and the duration and outcome of each run. \
            'freshetd --replay' shows what would have run with another configuration: docs/replay.md. Recent events \
            come from the daemon, older ones from the journal. A recording has no content and no secrets, but names \
            of pipelines and hosts, paths, addresses and network interfaces. With --output, replaces the file as a \
            whole and keeps its mode; only the owner can read a new file.

            Examples:
              freshetctl record --since -1d -o day.freshet
              freshetctl record --since yesterday --until today | gzip >yesterday.freshet.gz
            """)

    @OptionGroup var window: WindowOptions
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Write to this file; '-', the default, is standard output.", valueName: "file"))
    var output = "-"
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if output.isEmpty { throw ValidationError("--output needs the name of a file, or '-'.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        // Without --since, as much as a day.
        let window = try window.window(session, length: 86_400_000_000)
        guard window.until - window.since <= RecordingReader.longestWindow else {
            throw CommandFailure(.usage, "a recording has at most 31 days; use --since and --until")
        }
        let client = try session.connect()
        let history = try RecentHistory.read(nil, window, client, session)
        let (descriptions, pipelines, signals) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.descriptions(), try client.pipelines(), try client.signals())
        }
        guard let recording = Recording(history, descriptions, pipelines, signals) else {
            throw CommandFailure(
                .failure, "nothing is known of this time" + (history.notes.first.map { ": \($0)" } ?? ""))
        }
        let text = Array(recording.text.utf8)
        guard text.count <= RecordingReader.mostBytes else {
            throw CommandFailure(
                .failure, "the recording is longer than \(RecordingReader.mostBytes) bytes; record less")
        }
        if output == "-" {
            // The reason is printed in one place for all verbs (``Freshetctl``).
            guard session.context.outputBytes(text[...]) else { throw CommandFailure(.failure) }
        } else {
            do throws(EditFailure) {
                // Only the owner can read a new file, because a recording shows the habits of people.
                try EditedFile(output, content: [], mayBeLink: false).replace(
                    with: text, newMode: 0o600, isLasting: false)
            } catch {
                throw error.failure
            }
        }
        let runs = recording.events.count { $0.kind == .runEnded && $0.at >= recording.header.since }
        let firings = recording.events.count { $0.kind == .signal && $0.at >= recording.header.since }
        let times = session.times
        session.message(
            "recorded \(times.absolute(recording.header.since)) to \(times.absolute(recording.header.until)): "
                + "\(Count.text(firings, "signal")), \(Count.text(runs, "run"))")
        for note in history.notes { session.message(DisplayText.harmless(note)) }
    }
}

extension Recording {
    /// Nil: no part of the window is known.
    init?(
        _ history: RecentHistory, _ descriptions: [PipelineDescription], _ statuses: [PipelineStatus],
        _ signals: [SignalStatus]
    ) {
        var (since, gaps) = (history.since, history.unseen.sorted { $0.from < $1.from })
        // An unknown beginning is not a part of the recording.
        while let first = gaps.first, first.from <= since {
            since = max(since, first.to)
            gaps.removeFirst()
        }
        guard since < history.until else { return nil }
        self.init(header: Header(since: since, until: history.until))
        let byName = Dictionary(statuses.map { ($0.name, $0) }) { first, _ in first }
        pipelines = descriptions.filter { $0.invalid != true }.map { pipeline in
            let status = byName[pipeline.name]
            return Pipeline(
                name: pipeline.name, source: pipeline.source, signals: pipeline.signals, everyUSec: pipeline.everyUSec,
                lastCheck: status?.lastCheck, generation: status?.generation?.number)
        }
        sources = signals.map { Source(name: $0.name, fact: $0.fact, unavailable: $0.unavailable) }
        self.gaps = gaps.map { Gap(from: $0.from, to: $0.to) }
        events = Self.events(history.events, since)
    }

    /// The events of the window, and before them the last events that give the state at its beginning.
    private static func events(_ all: [ControlEvent], _ since: Int64) -> [ControlEvent] {
        struct Subject: Hashable {
            var kind: ControlEvent.Kind
            var name: String
        }
        var earlier: [Subject: ControlEvent] = [:]
        var events: [ControlEvent] = []
        var held: Set<String> = []
        for event in all.compactMap(\.recorded) {
            if event.kind == .state, let name = event.pipeline {
                // Only the beginning and the end of a hold.
                guard event.state == .held ? held.insert(name).inserted : held.remove(name) != nil else { continue }
            }
            guard event.at < since else {
                events.append(event)
                continue
            }
            switch event.kind {
            case .fact, .runEnded, .state:
                let name = event.pipeline ?? event.source ?? event.signal ?? ""
                earlier[Subject(kind: event.kind, name: name)] = event
            default: break
            }
        }
        return earlier.values.sorted { ($0.at, $0.kind.rawValue) < ($1.at, $1.kind.rawValue) } + events
    }
}
