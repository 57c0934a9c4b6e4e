import FreshetControl
import FreshetRender

/// The messages of a verb that waits for runs without a terminal: what each run waits for, once for each reason.
///
/// A script, a timer unit and `ssh` without a terminal see no progress line, so a wait without a network would look
/// like a hang.
final class WaitingNotice {
    /// The interval between two status requests; nil with `--quiet`.
    let interval: Duration?

    /// At most so many pipelines are named in one round.
    private static let shown = 10

    private let session: Session
    private let query: ProgressQuery
    private var ended: Set<String> = []
    private var known: [String: String] = [:]

    /// - Parameters:
    ///   - names: the pipelines; nil for all.
    ///   - connect: opens a connection for the status requests, at the first one.
    init(_ names: [String]?, in session: Session, connect: @escaping () throws(ControlClient.Failure) -> ControlClient)
    {
        self.session = session
        query = ProgressQuery(names, connect: connect)
        let isMany = names.map { $0.count > ProgressLine.many } ?? true
        interval = session.options.quiet ? nil : .seconds(isMany ? 5 : 1)
    }

    /// Requests the status of the runs, and prints what is new.
    func look() {
        guard let pipelines = query.pipelines() else { return }
        let lines = pipelines.compactMap { pipeline -> String? in
            let reason = ended.contains(pipeline.name) ? nil : Self.reason(pipeline)
            defer { known[pipeline.name] = reason }
            guard let reason, known[pipeline.name] != reason else { return nil }
            return DisplayText.harmless("\(pipeline.name): \(reason)")
        }
        for line in lines.prefix(Self.shown) { session.message(line) }
        if lines.count > Self.shown { session.message("and \(lines.count - Self.shown) more runs wait") }
    }

    func end(_ name: String) { ended.insert(name) }

    /// Such as `waiting for the network`; nil: the run does not wait.
    static func reason(_ pipeline: PipelineStatus) -> String? {
        pipeline.waitingFor.map { "waiting for \(PipelineView.waiting($0))" }
    }
}
