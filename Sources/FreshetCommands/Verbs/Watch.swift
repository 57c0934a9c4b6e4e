import ArgumentParser
import FreshetControl
import FreshetModel
import FreshetRender

struct Watch: Verb {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print a copy and each change of it.",
        discussion: """
            Prints the current content, then an empty line, then the difference between each new content and the one before, as 'diff' \
            does. A slow reader gets the newest content, and the number of generations that were skipped. With --json, \
            prints a JSON text sequence (RFC 7464): first {generation, content}, or {generation, base64} if the \
            content is not text; then differences.

            Examples:
              freshetctl watch jwks
              freshetctl watch topics --key .id
              freshetctl watch jwks --json | jq --seq .
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(
        help: ArgumentHelp(
            "Compare item by item, with the key at this path, such as .id, .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @Flag(help: "Compare line by line, also if 'cache.key' is set.") var lines = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if lines, key != nil { throw ValidationError("Give --lines or --key, but not both.") }
        try Comparison.validate(key)
    }

    func run(_ session: Session) throws(CommandFailure) {
        // One connection receives events. Each request has its own connection: the daemon closes idle ones.
        let monitor = try session.connect()
        let comparison = Comparison(
            of: name, by: Comparison.Key(option: key, configured: nil), options, session, isSequence: true)
        var watched = WatchedCopy(
            name: name, comparison: comparison, usesConfiguredKey: key == nil && !lines, session: session,
            options: options)
        var failure: CommandFailure?
        try session.callDaemon { () throws(ControlClient.Failure) in
            try monitor.monitor([name], endingWithReaderOf: session.context.outputDescriptor) { event in
                guard event.map(Watch.mayChangeCopy) ?? true else { return true }
                do throws(CommandFailure) {
                    return try watched.update(try session.connect(), isFirst: event == nil)
                } catch {
                    failure = error
                    return false
                }
            }
        }
        if let failure { throw failure }
    }

    /// The lines of a text, harmless for terminals.
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

/// The last state of a copy that was printed.
private struct WatchedCopy {
    let name: String
    private var comparison: Comparison
    /// Whether differences use the configured key. It is read for each difference: a reload may change it.
    private let usesConfiguredKey: Bool
    let session: Session
    let options: GlobalOptions
    private var seen: (side: Comparison.Side, content: [UInt8])?
    /// The highest number so far: after a rollback, the next change continues from this number.
    private var newest: Int64 = 0
    /// Whether the empty line after the first content was printed.
    private var isSeparated = false
    /// The generation whose withdrawal was printed.
    private var withdrawn: Int64?

    init(
        name: String, comparison: Comparison, usesConfiguredKey: Bool, session: Session, options: GlobalOptions
    ) {
        self.name = name
        self.comparison = comparison
        self.usesConfiguredKey = usesConfiguredKey
        self.session = session
        self.options = options
    }

    private struct Snapshot: Encodable {
        var generation: Int64?
        /// Nil if the content is not text.
        var content: String?
        var base64: String?
    }

    /// A record of the sequence: the copy is withdrawn, or published again.
    private struct Withdrawal: Encodable {
        var withdrawn: Int64?
        var returned: Int64?
    }

    /// Prints once that the copy is withdrawn, and once that the same copy is published again.
    private mutating func printWithdrawal(of number: Int64?) -> Bool {
        guard number != withdrawn else { return true }
        let before = withdrawn
        withdrawn = number
        guard options.json else {
            if let number {
                session.message("Generation \(number) is withdrawn: it is past its max-age.")
            } else if let before, before == seen?.side.number {
                session.message("Generation \(before) is published again.")
            }
            return true
        }
        let record = Withdrawal(withdrawn: number, returned: number == nil ? before : nil)
        return session.context.outputBytes(Array("\u{1E}\(ControlJSON.text(of: record))\n".utf8)[...])
    }

    /// Prints a new state of the copy; false if the output cannot be written.
    mutating func update(_ client: ControlClient, isFirst: Bool) throws(CommandFailure) -> Bool {
        let copy: Copy
        switch try current(client) {
        case .withdrawn(let number): return printWithdrawal(of: number)
        case .seen: return printWithdrawal(of: nil)
        case let other: copy = other
        }
        guard case .new(let side, let content) = copy else {
            if isFirst, session.context.isTerminal { session.message("No copy yet; end with Ctrl-C.") }
            return true
        }
        withdrawn = nil
        let before = newest
        newest = max(newest, side.number ?? 0)
        defer { seen = (side, content) }
        guard let seen else { return show(side, content) }
        if usesConfiguredKey { comparison.key = Comparison.Key(option: nil, configured: try key(client)) }
        if newest > before + 1 { session.message("\(Count.text(newest - before - 1, "generation")) skipped") }
        guard separate(seen.content) else { return false }
        do throws(CommandFailure) {
            try comparison.show(seen.side, seen.content, side, content)
        } catch {
            // The watch continues: only the comparison of this change failed.
            session.message(error.message)
        }
        return true
    }

    /// Prints an empty line between the first content and the first difference; false if it cannot be written.
    private mutating func separate(_ content: [UInt8]) -> Bool {
        guard !options.json, !isSeparated else { return true }
        isSeparated = true
        return session.context.outputBytes(Array((content.last == UInt8(ascii: "\n") ? "\n" : "\n\n").utf8)[...])
    }

    private func key(_ client: ControlClient) throws(CommandFailure) -> String? {
        try session.callDaemon { () throws(ControlClient.Failure) in try client.history(of: name, limit: 1) }.key
    }

    private enum Copy {
        case new(Comparison.Side, [UInt8])
        /// The copy that was printed last.
        case seen
        /// The generation of this number is withdrawn.
        case withdrawn(Int64)
        case none
    }

    /// The current state of the copy.
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
                // A newer generation has replaced it. The same number again means that its content is not kept.
                guard side.number != gone else { return .none }
                gone = side.number
                continue
            } catch .refused(.damagedGeneration) {
                // The daemon finds the damage too, and publishes another generation.
                session.message(
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
            // Harmless for a terminal; 'get' prints the bytes.
            let shown = session.context.isTerminal ? Watch.harmless(content) : content
            return session.context.outputBytes(shown[...])
        }
        let text = String(validating: content, as: UTF8.self)
        let snapshot = Snapshot(
            generation: side.number, content: text, base64: text == nil ? Base64.text(of: content) : nil)
        return session.context.outputBytes(Array("\u{1E}\(ControlJSON.text(of: snapshot))\n".utf8)[...])
    }
}
