import ArgumentParser
import FreshetControl
import FreshetRender

struct Marbles: Verb {
    static let configuration = CommandConfiguration(
        commandName: "marbles",
        abstract: "Draw why a pipeline ran: what it heard and gathered.",
        discussion: """
            A marble diagram, in the notation of FreshetTestKit: each signal that was heard, what of it was gathered into one, \
            and the runs that came of it; then each in a sentence, those that made no run as well. The last three times that \
            something happened, if no time is given. With --json, prints the events.

            Examples:
              freshetctl marbles jwks
              freshetctl marbles jwks --since -10min
              freshetctl marbles jwks --format svg > jwks.svg
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, svg
    }

    @Argument(help: "The pipeline.") var name: String
    @Option(help: "text or svg.") var format = Format.text
    @OptionGroup var window: WindowOptions
    @OptionGroup var options: GlobalOptions

    /// Without a time, as far back as the daemon remembers, at most so long: 400 days.
    private static let longest: Int64 = 400 * 86_400_000_000
    private static let usualEpisodes = 3
    /// More than that in one picture nobody looks at.
    private static let mostEpisodes = 24

    func run(_ session: Session) throws(CommandFailure) {
        let hasTime = window.since != nil || window.until != nil
        let window = try window.window(session, length: Self.longest)
        let client = try session.connect()
        let name = name
        let (descriptions, statuses) = try session.asking { () throws(ControlClient.Failure) in
            (try client.descriptions([name]), try client.pipelines([name]))
        }
        guard let description = descriptions.first, descriptions.count == 1 else {
            let what =
                descriptions.isEmpty
                ? "there is no pipeline '\(name)'" : "'\(name)' is \(descriptions.count) pipelines; name one"
            throw CommandFailure(.failure, DisplayText.harmless(what))
        }
        let history = try RecentHistory.read([name], window, reachesBack: hasTime, client, session)
        if options.json { return session.print(json: history.reply) }
        var diagram = MarbleDiagram(
            description, history, status: statuses.first,
            most: hasTime ? Self.mostEpisodes : Self.usualEpisodes)
        // Without a time nobody asked for what is older.
        if !hasTime { diagram.notes = [] }
        if format == .svg { return session.write(MarblesSVG(diagram: diagram, times: session.times).text) }
        let picture = MarblesText(
            diagram: diagram, times: session.times, palette: session.palette, legend: !options.noLegend)
        session.show(picture.lines(columns: session.pictureColumns))
    }
}
