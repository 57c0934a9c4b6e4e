import ArgumentParser
import FreshetControl
import FreshetRender

struct TimelineVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "timeline",
        abstract: "Draw what was heard and what ran, over time.",
        discussion: """
            A lane for each source of signals that fired and for each pipeline, with its runs and waits; behind them, when the \
            machine was offline or asleep. Without --since it is the last hour, or as much of it as anything is known of. It \
            comes from the daemon's memory, and what is older from the journal, which tells less: docs/journal.md. Names \
            choose pipelines, and the signals that they listen to. With --json, prints the events.

            Examples:
              freshetctl timeline
              freshetctl timeline jwks 'feed-*' --since -15min
              freshetctl timeline --since yesterday --until 06:00 --format svg > night.svg
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, svg, json
    }

    @Argument(help: "Pipelines, or patterns; all of them if none is named.") var names: [String] = []
    @Option(help: "text, svg or json.") var format = Format.text
    @OptionGroup var window: WindowOptions
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let isSaid = window.since != nil
        let window = try window.window(session, length: 3_600_000_000)
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        var history = try RecentHistory.read(names, window, client, session)
        if !isSaid { history.beginWhereKnown { session.context.timeZone($0).offset } }
        if options.json || format == .json { return session.print(json: history.reply) }
        let descriptions = try session.asking { () throws(ControlClient.Failure) in try client.descriptions(names) }
        let timeline = Timeline(history, descriptions, isChosen: names != nil)
        if format == .svg { return session.write(TimelineSVG(timeline: timeline, times: session.times).text) }
        let picture = TimelineText(
            timeline: timeline, times: session.times, palette: session.palette, legend: !options.noLegend)
        session.show(picture.lines(columns: session.pictureColumns))
    }
}

extension RecentHistory {
    /// A shorter picture is at least that long, so that a daemon's first second does not fill it, in microseconds.
    private static let leastLength: Int64 = 10_000_000

    /// Leaves out a beginning of which nothing is known, up to a time that is round.
    ///
    /// - Parameter offset: seconds east of UTC at an instant.
    mutating func beginWhereKnown(_ offset: (Int64) -> Int64) {
        guard let blank = unseen.first, blank.from <= since, blank.to < until else { return }
        let known = min(blank.to, until - Self.leastLength)
        since = max(since, TimeAxis.round(known, before: until, offset: offset))
        if since < blank.to { unseen[0].from = since } else { unseen.removeFirst() }
    }

    /// What happened in the window, as the interface has it.
    var reply: ControlMessage.RecentEvents {
        // From where on nothing is missing.
        let complete = max(since, unseen.map(\.to).max() ?? since)
        return ControlMessage.RecentEvents(events: events.filter { $0.at >= since }, completeSince: complete)
    }
}
