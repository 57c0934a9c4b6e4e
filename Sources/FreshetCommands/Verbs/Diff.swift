import ArgumentParser
import FreshetControl
import FreshetRender

struct Diff: Verb {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Show how two generations of a pipeline differ.",
        discussion: """
            Without numbers, compares the current copy with the newest kept generation before it; with one number, \
            that generation with the current copy. Compares line by line with diff(1). With --key, or if 'cache.key' \
            is configured, compares JSON arrays item by item: items that were added, removed, changed and moved; white \
            space within items does not count. --candidate compares the current copy with the content that a check \
            rejected last; 'accept' publishes that content. The exit status is 0 with and without a difference.

            Examples:
              freshetctl diff jwks
              freshetctl diff jwks 5 6 >jwks.patch
              freshetctl diff topics --key .id
              freshetctl diff jwks --candidate
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The older generation.") var from: Int64?
    @Argument(help: "The newer generation.") var to: Int64?
    @Option(
        help: ArgumentHelp(
            "Compare item by item, with the key at this path, such as .id, .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @Flag(help: "Compare line by line, also if 'cache.key' is set.") var lines = false
    @Flag(help: "Compare with the content that a check rejected last.") var candidate = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if candidate, to != nil {
            throw ValidationError("With --candidate, give at most one generation.")
        }
        if lines, key != nil { throw ValidationError("Give --lines or --key, but not both.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (old, new, configured) = try chosen(session, client)
        let comparison = Comparison(
            of: name, by: Comparison.Key(option: key, configured: lines ? nil : configured), options, session)
        let (before, after) = (try comparison.content(of: old, client), try comparison.content(of: new, client))
        try comparison.show(old, before, new, after)
    }

    // MARK: The generations

    private func chosen(
        _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> (old: Comparison.Side, new: Comparison.Side, key: String?) {
        let name = name
        let history = try session.callDaemon { () throws(ControlClient.Failure) in try client.history(of: name) }
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
        let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.pipelines([name]) }
        guard let candidate = pipelines.first?.candidate else {
            throw session.failure(.refused(.noCandidate(name: name)))
        }
        return candidate
    }
}

extension PastGeneration {
    /// Whether it is the published generation, or the withdrawn one.
    fileprivate var isCopy: Bool { current || withdrawn == true }
}
