import FreshetControl
import FreshetRender

/// The last line of a terminal, redrawn while runs are awaited.
///
/// It is drawn on standard error, so that data stays what it is, and only if that is a terminal. Nothing is drawn for
/// what is over within the first interval.
final class ProgressLine {
    /// Few enough that a daemon with many pipelines is not kept busy by being asked.
    static let many = 20

    /// How often it is drawn; nil: never.
    let interval: Duration?

    private let context: CommandContext
    private let columns: Int
    private let connect: () -> ControlClient?
    private let names: [String]?
    /// What is awaited, where it is not just the end of runs: such as `waits until jwks is fresh`.
    private let goal: String?
    private var client: ControlClient?
    private var isOver = false
    private var ended: Set<String> = []
    private var isShown = false

    /// - Parameters:
    ///   - names: of the pipelines that are awaited; nil: all.
    ///   - goal: what is awaited, if it is not the end of runs.
    ///   - connect: makes the connection by which the daemon is asked how far they are, when it is first needed.
    init(_ names: [String]?, in session: Session, goal: String? = nil, connect: @escaping () -> ControlClient?) {
        context = session.context
        columns = session.context.talkColumns ?? 0
        self.connect = connect
        self.names = names
        self.goal = goal
        let isWanted = columns > 0 && !session.options.quiet && session.context.environment["TERM"] != "dumb"
        let isMany = names.map { $0.count > Self.many } ?? true
        interval = isWanted ? (isMany ? .seconds(1) : .milliseconds(200)) : nil
    }

    /// Asks how far the runs are, and draws it.
    func draw() {
        if client == nil && !isOver { client = connect() }
        guard let client, let pipelines = try? client.pipelines(names) else {
            // Whoever awaits the results hears what is wrong.
            client = nil
            isOver = true
            return clear()
        }
        let now = ProgressView.line(pipelines.filter { !ended.contains($0.name) }, ended: ended.count)
        let line = goal.map { "\(DisplayText.harmless($0)); \(now)" } ?? now
        isShown = true
        // A line that reaches the last column would break.
        context.talk("\r\u{1B}[K" + DisplayText.truncated(line, to: columns - 1))
    }

    /// Makes room for what is said or printed.
    func clear() {
        guard isShown else { return }
        isShown = false
        context.talk("\r\u{1B}[K")
    }

    func end(_ name: String) {
        ended.insert(name)
        clear()
    }
}
