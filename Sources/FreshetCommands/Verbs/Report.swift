import ArgumentParser
import FreshetControl
import FreshetRender

struct Report: Verb {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write the state of all pipelines as a web page.",
        discussion: """
            Writes one HTML file with the list of pipelines, the timeline and the graph. The file needs no script and \
            no other file. With --output, replaces the file as a whole and keeps its mode; a new file has mode 0644, \
            less the umask. The page shows what its caller may see: choose who can read it. Without --since, the \
            timeline has the events that the daemon remembers, at most a day.

            Examples:
              freshetctl report --output status.html
              freshetctl report 'feed-*' --title 'Feeds of ams-3' -o feeds.html
              freshetctl report --since -12h >status.html
            """)

    @Argument(help: "Pipelines, or patterns; without a name, all.") var names: [String] = []
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Write to this file; '-', the default, is standard output.", valueName: "file"))
    var output = "-"
    @Option(help: "Set the title of the page.") var title = "Freshet status"
    @Option(help: ArgumentHelp("List at most this many pipelines.", valueName: "number")) var limit = 1_000
    @OptionGroup var window: WindowOptions
    @OptionGroup var options: GlobalOptions

    /// The length of the timeline without `--since`, in microseconds: a day.
    private static let length: Int64 = 86_400_000_000

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit needs a number of at least 1.") }
        if output.isEmpty { throw ValidationError("--output needs the name of a file, or '-'.") }
        if options.json {
            throw ValidationError("report has no JSON output; 'freshetctl list --json' prints the pipelines.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let hasSince = window.since != nil
        let window = try window.window(session, length: Self.length)
        let report = try StatusReport(
            names.isEmpty ? nil : names, window, reachesBack: hasSince, most: limit, session)
        let page = ReportPage(report: report, times: session.times, title: title).text
        guard output != "-" else { return session.write(page) }
        do throws(EditFailure) {
            // The file need not survive a power failure: the page would be old.
            try EditedFile(output, mayBeLink: false).replace(
                with: Array(page.utf8), newMode: 0o644 & ~EditedFile.creationMask(), isLasting: false)
        } catch {
            throw error.failure
        }
    }
}
