import ArgumentParser
import FreshetControl
import FreshetRender

struct History: Verb {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "List kept and removed generations.",
        discussion: """
            The newest generation is first. 'get --generation' prints a kept generation, 'diff' compares it, and \
            'rollback' publishes it again; 'cache.keep' sets how many are kept. With --key, or if 'cache.key' is \
            configured, the column ITEMS counts the items of a JSON array that differ from the generation before, if \
            both are kept: + added, - removed, ! changed, > moved. \
            The column MIRROR names the mirror of 'source.urls' from which the content comes.

            Examples:
              freshetctl history jwks
              freshetctl history topics -n 5 --key .id
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("lines")], help: "Show only this many, the newest.")
    var limit: Int64?
    @Option(
        help: ArgumentHelp(
            "Count items, with the key at this path, such as .id, .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("-n needs a number of at least 1.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, limit) = (name, limit)
        var history = try session.callDaemon { () throws(ControlClient.Failure) in
            // One more: the last generation that is shown is compared with it.
            try client.history(of: name, limit: limit.map { $0 == .max ? $0 : $0 + 1 })
        }
        history.key = key ?? history.key
        let path = history.key.flatMap(KeyPath.init)
        let counts = path.map { ItemCounts.between(history.generations, of: name, by: $0, client) } ?? [:]
        if let limit { history.generations = Array(history.generations.prefix(Int(clamping: limit))) }
        if options.json { return session.print(json: HistoryView.Answer(history, counts)) }
        guard !history.generations.isEmpty else {
            return session.message(DisplayText.harmless("'\(name)' has had no copy yet."))
        }
        let kept = history.generations.count(where: \.kept)
        let withMirrors = history.generations.contains { $0.mirror != nil }
        session.print(
            Table(
                columns: HistoryView.columns(withItems: path != nil, withMirrors: withMirrors),
                rows: history.generations.map {
                    HistoryView.row(
                        $0, session.times, items: path == nil ? nil : counts[$0.number]?.text ?? "-",
                        withMirrors: withMirrors)
                }),
            total:
                "\(Count.text(history.generations.count, "generation")) of \(DisplayText.harmless(name)), \(kept) kept."
        )
    }
}
