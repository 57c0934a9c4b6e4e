import FreshetControl
import FreshetRender

/// The last line of a terminal, redrawn while a verb waits for runs.
///
/// It is drawn on standard error if that is a terminal, so that it never mixes with data. Nothing is drawn for runs
/// that end within the first interval.
final class ProgressLine {
    /// More pipelines than this are requested less often, to keep the load of the daemon low.
    static let many = 20

    /// The interval between two drawings; nil if nothing is drawn.
    let interval: Duration?

    private let context: CommandContext
    private let columns: Int
    private let query: ProgressQuery
    /// The goal, if it is not the end of the runs, such as `waits until fresh`.
    private let goal: String?
    private var ended: Set<String> = []
    private var isShown = false

    /// - Parameters:
    ///   - names: the pipelines; nil for all.
    ///   - goal: the goal, if it is not the end of the runs.
    ///   - connect: opens a connection for the status requests, at the first one.
    init(
        _ names: [String]?, in session: Session, goal: String? = nil,
        connect: @escaping () throws(ControlClient.Failure) -> ControlClient
    ) {
        context = session.context
        columns = session.context.errorColumns ?? 0
        query = ProgressQuery(names, connect: connect)
        self.goal = goal
        let isEnabled = columns > 0 && !session.options.quiet && session.context.environment["TERM"] != "dumb"
        let isMany = names.map { $0.count > Self.many } ?? true
        interval = isEnabled ? (isMany ? .seconds(1) : .milliseconds(200)) : nil
    }

    /// Requests the progress of the runs, and draws it.
    func draw() {
        guard let pipelines = query.pipelines() else { return clear() }
        let now = ProgressView.line(pipelines.filter { !ended.contains($0.name) }, ended: ended.count)
        let line = goal.map { "\(DisplayText.harmless($0)); \(now)" } ?? now
        isShown = true
        // A line that reaches the last column would wrap.
        context.drawError("\r\u{1B}[K" + DisplayText.truncated(line, to: columns - 1))
    }

    /// Erases the line before other output.
    func clear() {
        guard isShown else { return }
        isShown = false
        context.drawError("\r\u{1B}[K")
    }

    func end(_ name: String) {
        ended.insert(name)
        clear()
    }
}
