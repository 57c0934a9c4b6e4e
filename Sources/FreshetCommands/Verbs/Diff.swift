import ArgumentParser
import FreshetControl
import FreshetRender

struct Diff: Verb {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Show how two generations of a pipeline differ.",
        discussion: """
            Without numbers, the current copy and the newest one before it that is kept; with one, that one and the current \
            copy. Line by line, by diff(1); with --key, or if 'cache.key' is configured, item by item of JSON arrays: what \
            was added, removed, changed and moved; then items that differ in the space between their parts alone are the \
            same. With --candidate what a check \
            refused last is compared with the current copy; 'accept' makes it the copy. The exit status is 0 whether there is \
            a difference or not.

            Examples:
              freshetctl diff jwks
              freshetctl diff jwks 5 6 >jwks.patch
              freshetctl diff topics --key .id
              freshetctl diff jwks --candidate
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The generation that is compared with.") var from: Int64?
    @Argument(help: "The generation that is compared.") var to: Int64?
    @Option(
        help: ArgumentHelp(
            "Item by item: where an item's key is, such as .id or .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @Flag(help: "Line by line, whatever 'cache.key' says.") var lines = false
    @Flag(help: "Compare what a check refused last.") var candidate = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if candidate, to != nil {
            throw ValidationError("--candidate is what is compared: give one generation to compare it with, or none.")
        }
        if lines, key != nil { throw ValidationError("Either --lines or --key.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (old, new, configured) = try chosen(session, client)
        let comparison = Comparison(
            of: name, by: Comparison.Key(asked: key, configured: lines ? nil : configured), options, session)
        let (before, after) = (try comparison.content(of: old, client), try comparison.content(of: new, client))
        try comparison.show(old, before, new, after)
    }

    // MARK: Which

    private func chosen(
        _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> (old: Comparison.Side, new: Comparison.Side, key: String?) {
        let name = name
        let history = try session.asking { () throws(ControlClient.Failure) in try client.history(of: name) }
        let kept = history.generations.filter(\.kept)
        func missing(_ number: Int64?) -> CommandFailure {
            session.failure(
                .refused(.noSuchGeneration(name: name, number: number, kept: kept.map(\.number).sorted())))
        }
        if candidate {
            let old = from.map { number in kept.first { $0.number == number } } ?? kept.first(where: \.isCopy)
            guard let old else {
                if let from { throw missing(from) }
                throw session.failure(.refused(.noGeneration(name: name)))
            }
            return (Comparison.Side(old), Comparison.Side(try candidate(session, client)), history.key)
        }
        let new = to.map { number in kept.first { $0.number == number } } ?? kept.first(where: \.isCopy)
        guard let new else {
            if let to { throw missing(to) }
            throw session.failure(.refused(.noGeneration(name: name)))
        }
        let old = from.map { number in kept.first { $0.number == number } } ?? kept.first { $0.number < new.number }
        guard let old else { throw missing(from) }
        return (Comparison.Side(old), Comparison.Side(new), history.key)
    }

    private func candidate(_ session: Session, _ client: ControlClient) throws(CommandFailure) -> CandidateStatus {
        let name = name
        let pipelines = try session.asking { () throws(ControlClient.Failure) in try client.pipelines([name]) }
        guard let candidate = pipelines.first?.candidate else {
            throw session.failure(.refused(.noCandidate(name: name)))
        }
        return candidate
    }
}

extension PastGeneration {
    /// It is what readers see, or would see if it were not too old.
    fileprivate var isCopy: Bool { current || withdrawn == true }
}
