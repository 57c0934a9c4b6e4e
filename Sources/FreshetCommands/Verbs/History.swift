import ArgumentParser
import FreshetControl
import FreshetRender

struct History: Verb {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show the generations that there are, and were.",
        discussion: """
            Newest first. The content of those that are kept can be had with 'get --generation', compared with 'diff', and \
            made the current copy again with 'rollback'; 'cache.keep' says how many are kept. With --key, or if 'cache.key' \
            is configured, ITEMS says what became of the items of a JSON array since the generation before, where both are \
            kept: + added, - removed, ! changed, > moved.

            Examples:
              freshetctl history jwks
              freshetctl history topics -n 5 --key .id
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(name: [.customShort("n"), .customLong("lines")], help: "Show the newest of them only.") var limit: Int64?
    @Option(
        help: ArgumentHelp(
            "Count items: where an item's key is, such as .id or .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("-n wants a number from 1 on.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, limit) = (name, limit)
        var history = try session.asking { () throws(ControlClient.Failure) in
            // One more, which the last one shown is compared with.
            try client.history(of: name, limit: limit.map { $0 == .max ? $0 : $0 + 1 })
        }
        history.key = key ?? history.key
        let path = history.key.flatMap(KeyPath.init)
        let counts = path.map { ItemCounts.between(history.generations, of: name, by: $0, client) } ?? [:]
        if let limit { history.generations = Array(history.generations.prefix(Int(clamping: limit))) }
        if options.json { return session.print(json: HistoryView.Answer(history, counts)) }
        guard !history.generations.isEmpty else {
            return session.say(DisplayText.harmless("'\(name)' has had no copy yet."))
        }
        let kept = history.generations.count(where: \.kept)
        session.print(
            Table(
                columns: HistoryView.columns(withItems: path != nil),
                rows: history.generations.map {
                    HistoryView.row($0, session.times, items: path == nil ? nil : counts[$0.number]?.text ?? "-")
                }),
            total:
                "\(Count.text(history.generations.count, "generation")) of \(DisplayText.harmless(name)), \(kept) kept."
        )
    }
}
