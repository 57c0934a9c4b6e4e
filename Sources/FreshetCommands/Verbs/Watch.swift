import ArgumentParser
import FreshetControl
import FreshetRender

struct Watch: Verb {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print a copy, and then each change of it.",
        discussion: """
            First the content as it is, then how each new one differs from the one before, as 'diff' shows it. Whoever reads \
            slowly gets the newest, and is told how many it has not seen. With --json, prints a JSON text sequence \
            (RFC 7464): first {generation, content}, where content is text, or base64 has its bytes; then differences.

            Examples:
              freshetctl watch jwks
              freshetctl watch topics --key .id
              freshetctl watch jwks --json | jq --seq .
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(
        help: ArgumentHelp(
            "Item by item: where an item's key is, such as .id or .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @Flag(help: "Line by line, whatever 'cache.key' says.") var lines = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if lines, key != nil { throw ValidationError("Either --lines or --key.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        // One connection says that something happened. Others ask what: the daemon closes one that says nothing for long.
        let news = try session.connect()
        let comparison = Comparison(
            of: name, by: Comparison.Key(asked: key, configured: nil), options, session, isSequence: true)
        var watched = Watched(
            name: name, comparison: comparison, goesByConfiguration: key == nil && !lines, session: session,
            options: options)
        var failure: CommandFailure?
        try session.asking { () throws(ControlClient.Failure) in
            try news.monitor([name], endingWithReaderOf: session.context.outputDescriptor) { event in
                guard event.map(Watch.mayChangeCopy) ?? true else { return true }
                do throws(CommandFailure) {
                    return try watched.look(try session.connect(), isFirst: event == nil)
                } catch {
                    failure = error
                    return false
                }
            }
        }
        if let failure { throw failure }
    }

    /// The lines of a text as a terminal may have them.
    static func harmless(_ content: [UInt8]) -> [UInt8] {
        let lines = String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        let shown = lines.map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map { DisplayText.harmless(String($0)) }
                .joined(separator: "\t")
        }
        return Array(shown.joined(separator: "\n").utf8)
    }

    private static func mayChangeCopy(_ event: ControlEvent) -> Bool {
        switch event.kind {
        case .runEnded, .state, .skipped, .reloaded: true
        default: false
        }
    }
}

/// A copy, as somebody has seen it last.
private struct Watched {
    let name: String
    private var comparison: Comparison
    /// By the key that is configured when something has changed: a reload may change it.
    private let goesByConfiguration: Bool
    let session: Session
    let options: GlobalOptions
    private var seen: (side: Comparison.Side, content: [UInt8])?
    /// The highest number that was seen: a rollback goes back, and the next change goes on from here.
    private var newest: Int64 = 0
    /// It was told that this is withdrawn.
    private var withdrawn: Int64?

    init(
        name: String, comparison: Comparison, goesByConfiguration: Bool, session: Session, options: GlobalOptions
    ) {
        self.name = name
        self.comparison = comparison
        self.goesByConfiguration = goesByConfiguration
        self.session = session
        self.options = options
    }

    private struct Snapshot: Encodable {
        var generation: Int64?
        /// Nil: it is no text.
        var content: String?
        var base64: String?
    }

    /// What a line of the sequence says of a copy that readers find no more, or again.
    private struct Withdrawal: Encodable {
        var withdrawn: Int64?
        var returned: Int64?
    }

    /// Tells once that there is no copy any more since it is too old, and once that the same one is there again.
    private mutating func tellWithdrawal(of number: Int64?) -> Bool {
        guard number != withdrawn else { return true }
        let before = withdrawn
        withdrawn = number
        guard options.json else {
            if let number {
                session.say("Generation \(number) is withdrawn: it is past its max-age.")
            } else if let before, before == seen?.side.number {
                session.say("Generation \(before) is there again.")
            }
            return true
        }
        let news = Withdrawal(withdrawn: number, returned: number == nil ? before : nil)
        return session.context.outputBytes(Array("\u{1E}\(ControlJSON.text(of: news))\n".utf8)[...])
    }

    /// Shows what is new; false if nobody reads any more.
    mutating func look(_ client: ControlClient, isFirst: Bool) throws(CommandFailure) -> Bool {
        let copy: Copy
        switch try current(client) {
        case .withdrawn(let number): return tellWithdrawal(of: number)
        case .seen: return tellWithdrawal(of: nil)
        case let other: copy = other
        }
        guard case .new(let side, let content) = copy else {
            if isFirst, session.context.isTerminal { session.say("No copy yet; end with Ctrl-C.") }
            return true
        }
        withdrawn = nil
        let before = newest
        newest = max(newest, side.number ?? 0)
        defer { seen = (side, content) }
        guard let seen else { return show(side, content) }
        if goesByConfiguration { comparison.key = Comparison.Key(asked: nil, configured: try key(client)) }
        if newest > before + 1 { session.say("\(Count.text(newest - before - 1, "generation")) in between not seen") }
        do throws(CommandFailure) {
            try comparison.show(seen.side, seen.content, side, content)
        } catch {
            // That it changed is worth more than how.
            session.say(error.message)
        }
        return true
    }

    private func key(_ client: ControlClient) throws(CommandFailure) -> String? {
        try session.asking { () throws(ControlClient.Failure) in try client.history(of: name, limit: 1) }.key
    }

    private enum Copy {
        case new(Comparison.Side, [UInt8])
        /// It is what was seen last.
        case seen
        /// That of this number is too old for readers.
        case withdrawn(Int64)
        case none
    }

    /// What is current.
    private func current(_ client: ControlClient) throws(CommandFailure) -> Copy {
        var gone: Int64?
        while true {
            let generation: GenerationStatus
            do throws(ControlClient.Failure) {
                generation = try client.generation(of: name)
            } catch .refused(.noGeneration) {
                return .none
            } catch .refused(.withdrawn(_, let number, _)) {
                return .withdrawn(number)
            } catch {
                throw session.failure(error)
            }
            let side = Comparison.Side(generation)
            if side.number == seen?.side.number, side.digest == seen?.side.digest { return .seen }
            let content: [UInt8]?
            do throws(ControlClient.Failure) {
                content = try comparison.bytes(of: side, client)
            } catch .refused(.noSuchGeneration) {
                // Another one has taken its place since; or none has, and nothing is kept of it.
                guard side.number != gone else { return .none }
                gone = side.number
                continue
            } catch .refused(.damagedGeneration) {
                // The daemon finds that too, and then there is another one.
                session.say(
                    session.failure(.refused(.damagedGeneration(name: name, number: generation.number))).message)
                return .none
            } catch {
                throw session.failure(error)
            }
            guard let content else { throw comparison.tooLarge(side) }
            return .new(side, content)
        }
    }

    private func show(_ side: Comparison.Side, _ content: [UInt8]) -> Bool {
        guard options.json else {
            // Somebody looks at it, and what changes is shown beside it; who wants the bytes has 'get'.
            let shown = session.context.isTerminal ? Watch.harmless(content) : content
            return session.context.outputBytes(shown[...])
        }
        let text = String(validating: content, as: UTF8.self)
        let snapshot = Snapshot(
            generation: side.number, content: text, base64: text == nil ? Base64.text(of: content) : nil)
        return session.context.outputBytes(Array("\u{1E}\(ControlJSON.text(of: snapshot))\n".utf8)[...])
    }
}
