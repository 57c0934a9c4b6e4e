import ArgumentParser
import FreshetControl
import FreshetRender

struct Marbles: Verb {
    static let configuration = CommandConfiguration(
        commandName: "marbles",
        abstract: "Draw which signals caused which runs of a pipeline.",
        discussion: """
            Draws a marble diagram, in the notation of FreshetTestKit: each signal, the signals that were gathered \
            into one, and the runs that followed. Below, each signal and each run has a sentence, also signals without \
            a run. Without a time, shows the last three episodes. With --json, prints the events.

            Examples:
              freshetctl marbles jwks
              freshetctl marbles jwks --since -10min
              freshetctl marbles jwks --format svg > jwks.svg
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, svg
    }

    @Argument(help: "The pipeline.") var name: String
    @Option(help: "Draw as text or svg.") var format = Format.text
    @OptionGroup var window: WindowOptions
    @OptionGroup var options: GlobalOptions

    /// The longest window without a time, in microseconds: 400 days. The daemon's events limit it further.
    private static let longest: Int64 = 400 * 86_400_000_000
    private static let usualEpisodes = 3
    /// The most episodes in one picture.
    private static let mostEpisodes = 24

    func run(_ session: Session) throws(CommandFailure) {
        let hasTime = window.since != nil || window.until != nil
        let window = try window.window(session, length: Self.longest)
        let client = try session.connect()
        let name = name
        let (descriptions, statuses) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.descriptions([name]), try client.pipelines([name]))
        }
        guard let description = descriptions.first, descriptions.count == 1 else {
            let what =
                descriptions.isEmpty
                ? "there is no pipeline '\(name)'" : "'\(name)' matches \(descriptions.count) pipelines; name one"
            throw CommandFailure(.failure, DisplayText.harmless(what))
        }
        let history = try RecentHistory.read([name], window, reachesBack: hasTime, client, session)
        if options.json { return session.print(json: history.reply) }
        var diagram = MarbleDiagram(
            description, history, status: statuses.first,
            most: hasTime ? Self.mostEpisodes : Self.usualEpisodes)
        // Without a time, the notes about older events are of no interest.
        if !hasTime { diagram.notes = [] }
        if format == .svg { return session.write(MarblesSVG(diagram: diagram, times: session.times).text) }
        let picture = MarblesText(
            diagram: diagram, times: session.times, palette: session.palette, legend: !options.noLegend)
        session.show(picture.lines(columns: session.pictureColumns))
    }
}
