import ArgumentParser
import FreshetControl

struct IsFresh: Verb {
    static let configuration = CommandConfiguration(
        commandName: "is-fresh",
        abstract: "Succeed if copies are fresh, for monitoring.",
        discussion: """
            Prints a word for each pipeline: fresh; stale (its check is overdue, or the source has other content); \
            expired (past its max-age, or past the end of validity that the content states); withdrawn (past its \
            max-age, and no longer published); none (no copy yet). Exit status: 0 if all copies are fresh, 1 if not, \
            or if a pipeline does not exist, 69 if the daemon does not run. --quiet prints nothing.

            Examples:
              freshetctl is-fresh jwks
              freshetctl is-fresh --quiet jwks flags || page-somebody
              freshetctl is-fresh '*'
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) { try Self.answer(names, session) }

    static func answer(_ names: [String], _ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let words: [String]
        if session.options.json {
            let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.named(names) }
            session.print(json: ControlMessage.Pipelines(pipelines: pipelines))
            words = pipelines.map { word($0) }
        } else {
            let found = try session.callDaemon { () throws(ControlClient.Failure) in
                try client.summaries(ControlMessage.List(names: names))
            }
            words = PipelineSelection.ordered(found, as: names, by: \.name).map { word($0) }
            if !session.options.quiet { for word in words { session.print(word) } }
        }
        guard !words.isEmpty, words.allSatisfy({ $0 == Freshness.fresh.rawValue }) else {
            throw CommandFailure(.failure)
        }
    }

    /// The freshness of the copy, in a word.
    static func word(_ pipeline: PipelineStatus) -> String { word(PipelineSummary(pipeline)) }

    private static func word(_ pipeline: PipelineSummary) -> String {
        if pipeline.withdrawn != nil { return "withdrawn" }
        guard pipeline.generation != nil else { return "none" }
        // Without a known time of the last check, the copy is not known to be fresh.
        return (pipeline.freshness ?? .stale).rawValue
    }
}
