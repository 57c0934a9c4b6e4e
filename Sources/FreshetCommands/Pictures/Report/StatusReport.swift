import FreshetControl
import FreshetRender

/// The content of the page of `report`: the pipelines, and what the two pictures show.
struct StatusReport {
    /// A pipeline in the table.
    struct Row: Hashable, Sendable {
        var summary: PipelineSummary
        /// The whole status; nil beyond ``mostDrawn``: the summary has the beginning of the error.
        var details: PipelineStatus?

        /// Whether the pipeline fails, its copy is too old, or a hook fails.
        var isBad: Bool {
            summary.state == .failed || summary.freshness == .expired || summary.hookFails == true
                || summary.failure != nil || summary.withdrawn != nil
        }

        /// The errors of the pipeline and of its hooks.
        var errors: [String] {
            let failure = details?.failure?.message ?? summary.failure
            let hooks = (details?.hooks ?? []).compactMap { hook in
                hook.error.map { "hook \(hook.sharedName ?? hook.hook): \($0)" }
            }
            return [failure].compactMap(\.self) + hooks
        }
    }

    /// The most pipelines in a picture: more lanes are not readable, and each is some elements of the page.
    static let mostDrawn = 100

    var daemon: DaemonStatus
    /// Those that fail first, then by name; at most the requested number.
    var rows: [Row]
    /// The number of all selected pipelines.
    var total: Int
    /// The number of all selected pipelines that fail.
    var bad: Int
    var graph: PipelineGraph
    var timeline: Timeline

    /// - Parameters:
    ///   - summaries: all selected pipelines.
    ///   - most: the most rows.
    static func ordered(_ summaries: [PipelineSummary]) -> [Row] {
        let rows = summaries.map { Row(summary: $0) }.sorted { $0.summary.name < $1.summary.name }
        return rows.filter(\.isBad) + rows.filter { !$0.isBad }
    }

    /// Requests everything from the daemon.
    ///
    /// - Parameters:
    ///   - names: pipelines, or patterns; nil for all.
    ///   - window: the time of the timeline.
    ///   - reachesBack: whether events before the daemon's own are read from the journal.
    ///   - most: the most rows.
    init(
        _ names: [String]?, _ window: RecentHistory.Window, reachesBack: Bool, most: Int, _ session: Session
    ) throws(CommandFailure) {
        let client = try session.connect()
        let (daemon, summaries) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.daemon(), try client.summaries(ControlMessage.List(names: names)))
        }
        var rows = Self.ordered(summaries)
        let drawn = rows.prefix(Self.mostDrawn).map(\.summary.name)
        // Without names, a pipeline that a reload removes meanwhile is not an error.
        let wanted = rows.count > drawn.count ? drawn : names
        let (descriptions, statuses) =
            drawn.isEmpty
            ? ([], [])
            : try session.callDaemon { () throws(ControlClient.Failure) in
                (try client.descriptions(wanted), try client.pipelines(wanted))
            }
        let details = Dictionary(statuses.map { ($0.name, $0) }) { first, _ in first }
        for index in rows.indices.prefix(Self.mostDrawn) { rows[index].details = details[rows[index].summary.name] }
        var history = try RecentHistory.read(wanted, window, reachesBack: reachesBack, client, session)
        history.beginWhereKnown { session.context.timeZone($0).offset }
        self.daemon = daemon
        total = rows.count
        bad = rows.count(where: \.isBad)
        self.rows = Array(rows.prefix(most))
        graph = PipelineGraph(descriptions, statuses, session.pathUnits)
        timeline = Timeline(history, descriptions, isChosen: false)
        if timeline.sources.count > Self.mostDrawn {
            let others = timeline.sources.count - Self.mostDrawn
            timeline.notes.append("\(Count.text(others, "further signal")) not drawn.")
            timeline.sources = Array(timeline.sources.prefix(Self.mostDrawn))
        }
    }

    init(
        daemon: DaemonStatus, rows: [Row], total: Int, bad: Int, graph: PipelineGraph, timeline: Timeline
    ) {
        self.daemon = daemon
        self.rows = rows
        self.total = total
        self.bad = bad
        self.graph = graph
        self.timeline = timeline
    }
}
