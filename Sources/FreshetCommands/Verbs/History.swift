import ArgumentParser
import FreshetControl
import FreshetRender

struct History: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Show the generations that there are, and were.",
        discussion: """
            Newest first. The content of those that are kept can be had with 'get --generation', compared with 'diff', and \
            made the current copy again with 'rollback'; 'cache.keep' says how many are kept.
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(name: [.customShort("n"), .customLong("lines")], help: "Show the newest of them only.") var limit: Int64?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("-n wants a number from 1 on.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, limit) = (name, limit)
        let history = try session.asking { () throws(ControlClient.Failure) in
            try client.history(of: name, limit: limit)
        }
        if options.json { return session.print(json: history) }
        guard !history.generations.isEmpty else {
            return session.say(DisplayText.harmless("'\(name)' has had no copy yet."))
        }
        let kept = history.generations.count(where: \.kept)
        session.print(
            Table(
                columns: HistoryView.columns,
                rows: history.generations.map { HistoryView.row($0, session.times) }),
            total:
                "\(Count.text(history.generations.count, "generation")) of \(DisplayText.harmless(name)), \(kept) kept."
        )
    }
}
