import ArgumentParser
import FreshetControl
import FreshetRender

struct TimelineVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "timeline",
        abstract: "Draw signals and runs over time.",
        discussion: """
            Draws a lane for each signal that fired and for each pipeline, with its runs and waits; the background \
            shows when the machine was offline or asleep. Without --since, shows the known part of the last hour. \
            Recent events come from the daemon, older ones from the journal, which has fewer of them: docs/journal.md. \
            Names select pipelines and the signals that they subscribe to. Pipelines that are not configured any more \
            are left out, unless --all is given. With --json, prints the events.

            Examples:
              freshetctl timeline
              freshetctl timeline jwks 'feed-*' --since -15min
              freshetctl timeline --since yesterday --until 06:00 --format svg > night.svg
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, svg, json
    }

    @Argument(help: "Pipelines, or patterns; without a name, all.") var names: [String] = []
    @Option(help: "Draw as text or svg, or print json.") var format = Format.text
    @Flag(help: "Draw pipelines that are not configured any more, too.") var all = false
    @OptionGroup var window: WindowOptions
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let hasSince = window.since != nil
        let window = try window.window(session, length: 3_600_000_000)
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        var history = try RecentHistory.read(names, window, client, session)
        if !hasSince { history.beginWhereKnown { session.context.timeZone($0).offset } }
        if options.json || format == .json { return session.print(json: history.reply) }
        let descriptions = try session.callDaemon { () throws(ControlClient.Failure) in try client.descriptions(names) }
        let timeline = Timeline(history, descriptions, isChosen: names != nil, hasRemoved: all)
        if format == .svg { return session.write(TimelineSVG(timeline: timeline, times: session.times).text) }
        let picture = TimelineText(
            timeline: timeline, times: session.times, palette: session.palette, legend: !options.noLegend)
        session.show(picture.lines(columns: session.pictureColumns))
    }
}

extension RecentHistory {
    /// The shortest picture, in microseconds: the first second of a daemon must not fill it.
    private static let leastLength: Int64 = 10_000_000

    /// Cuts off an unknown beginning, up to a round time.
    ///
    /// - Parameter offset: seconds east of UTC at an instant.
    mutating func beginWhereKnown(_ offset: (Int64) -> Int64) {
        guard let blank = unseen.first, blank.from <= since, blank.to < until else { return }
        let known = min(blank.to, until - Self.leastLength)
        since = max(since, TimeAxis.round(known, before: until, offset: offset))
        if since < blank.to { unseen[0].from = since } else { unseen.removeFirst() }
    }

    /// The events of the window, as a reply of the interface.
    var reply: ControlMessage.RecentEvents {
        // After this instant, no event is missing.
        let complete = max(since, unseen.map(\.to).max() ?? since)
        return ControlMessage.RecentEvents(events: events.filter { $0.at >= since }, completeSince: complete)
    }
}
