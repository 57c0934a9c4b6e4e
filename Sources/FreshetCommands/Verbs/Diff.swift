import ArgumentParser
import FreshetControl
import FreshetRender

struct Diff: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Show how two generations of a pipeline differ.",
        discussion: """
            Without numbers, the current copy and the newest one before it that is kept; with one, that one and the current \
            copy. Line by line, by diff(1); with --key, item by item of JSON arrays: what was added, removed, changed and \
            moved. With --candidate what a check refused last is compared with the current copy; 'accept' makes it the copy. With --key, items that differ in the space between their parts alone are the same. The exit status is 0 whether \
            there is a difference or not.
            """)

    /// More than this of a generation is left to other programs: both are held in memory, and compared there.
    static let mostBytes: Int64 = 64 << 20

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The generation that is compared with.") var from: Int64?
    @Argument(help: "The generation that is compared.") var to: Int64?
    @Option(
        help: ArgumentHelp(
            "Item by item: where an item's key is, such as .id or .meta.name, or . for the item itself.",
            valueName: "path"))
    var key: String?
    @Flag(help: "Compare what a check refused last.") var candidate = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if candidate, to != nil {
            throw ValidationError("--candidate is what is compared: give one generation to compare it with, or none.")
        }
        if let key, KeyPath(key) == nil {
            throw ValidationError("--key wants a path such as .id or .meta.name, or . for the item itself.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (old, new) = try chosen(session, client)
        let (before, after) = (try content(old, session, client), try content(new, session, client))
        if let path = key.flatMap(KeyPath.init) {
            let lists = (try items(before, path, old), try items(after, path, new))
            let view = ItemDifferenceView(
                difference: ItemDifference(from: lists.0, to: lists.1), old: lists.0, new: lists.1)
            if options.json {
                session.context.output(
                    view.json(from: old.number ?? 0, to: new.number, candidate: new.number == nil ? new.digest : nil)
                        + "\n")
            } else {
                show(view.lines(session.palette), old, new, session)
                if !view.difference.changes.isEmpty, !options.noLegend { session.context.output("\n\(view.total)\n") }
            }
        } else {
            try compareLines(before, after, old, new, session)
        }
    }

    // MARK: Which, and what is in them

    /// A content that is compared.
    private struct Side {
        /// Nil: the candidate.
        var number: Int64?
        var size: Int64
        var digest: String

        init(_ generation: PastGeneration) {
            (number, size, digest) = (generation.number, generation.size, generation.digest)
        }

        init(_ candidate: CandidateStatus) { (size, digest) = (candidate.size, candidate.digest) }

        var text: String { number.map { "generation \($0)" } ?? "the candidate" }
        /// In a heading.
        var title: String { number.map(String.init) ?? "candidate \(digest)" }
    }

    private func chosen(
        _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> (old: Side, new: Side) {
        let name = name
        let generations = try session.asking { () throws(ControlClient.Failure) in try client.history(of: name) }
            .generations
        let kept = generations.filter(\.kept)
        func missing(_ number: Int64?) -> CommandFailure {
            session.failure(
                .refused(.noSuchGeneration(name: name, number: number, kept: kept.map(\.number).sorted())))
        }
        if candidate {
            let old = from.map { number in kept.first { $0.number == number } } ?? kept.first(where: \.current)
            guard let old else {
                if let from { throw missing(from) }
                throw session.failure(.refused(.noGeneration(name: name)))
            }
            return (Side(old), Side(try candidate(session, client)))
        }
        let new = to.map { number in kept.first { $0.number == number } } ?? kept.first(where: \.current)
        guard let new else {
            if let to { throw missing(to) }
            throw session.failure(.refused(.noGeneration(name: name)))
        }
        let old = from.map { number in kept.first { $0.number == number } } ?? kept.first { $0.number < new.number }
        guard let old else { throw missing(from) }
        return (Side(old), Side(new))
    }

    private func candidate(_ session: Session, _ client: ControlClient) throws(CommandFailure) -> CandidateStatus {
        let name = name
        let pipelines = try session.asking { () throws(ControlClient.Failure) in try client.pipelines([name]) }
        guard let candidate = pipelines.first?.candidate else {
            throw session.failure(.refused(.noCandidate(name: name)))
        }
        return candidate
    }

    private func content(
        _ generation: Side, _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> [UInt8] {
        guard generation.size <= Self.mostBytes else {
            throw CommandFailure(
                .failure,
                DisplayText.harmless(
                    "\(generation.text) has \(SizeText.bytes(generation.size)), and 'diff' takes "
                        + "\(SizeText.bytes(Self.mostBytes)); 'freshetctl get \(name) "
                        + (generation.number.map { "--generation \($0)" } ?? "--candidate")
                        + "' hands it to another program"))
        }
        let name = name
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(generation.size))
        try session.asking { () throws(ControlClient.Failure) in
            let take = { (piece: [UInt8]) in
                bytes += piece
                return bytes.count <= Self.mostBytes
            }
            if let number = generation.number { return try client.read(number, of: name, each: take) }
            try client.readCandidate(of: name, each: take)
        }
        return bytes
    }

    private func items(
        _ bytes: [UInt8], _ path: KeyPath, _ generation: Side
    ) throws(CommandFailure) -> ItemList {
        do throws(ItemListFault) {
            return try ItemList(bytes, key: path)
        } catch {
            throw CommandFailure(
                .failure,
                DisplayText.harmless(
                    "the content of \(generation.text) \(error); without --key it is compared line by line"
                ))
        }
    }

    // MARK: Showing

    private struct Lines: Encodable {
        var from: Int64?
        /// Nil: the candidate.
        var to: Int64?
        /// Its digest.
        var candidate: String?
        var by = "line"
        var hunks: [LineHunk]
    }

    private func compareLines(
        _ before: [UInt8], _ after: [UInt8], _ old: Side, _ new: Side, _ session: Session
    ) throws(CommandFailure) {
        let isSame = before == after
        if !isSame, before.contains(0) || after.contains(0) {
            throw CommandFailure(
                .failure, "\(Self.both(old, new)) differ, and are no text to be shown")
        }
        let unified: [UInt8]
        do throws(LineDifference.Failure) {
            unified = isSame ? [] : try LineDifference.unified(before, after)
        } catch {
            throw CommandFailure(.failure, DisplayText.harmless(error.message))
        }
        if options.json {
            return session.print(
                json: Lines(
                    from: old.number, to: new.number, candidate: new.number == nil ? new.digest : nil,
                    hunks: LineHunk.hunks(of: unified)))
        }
        let palette = session.palette
        // What is printed to a terminal must do nothing to it; a file, or patch(1), gets the bytes as they are.
        guard session.context.isTerminal || palette.isColourful else {
            if !unified.isEmpty {
                session.context.output(heading(old, new).map { $0 + "\n" }.joined())
                _ = session.context.outputBytes(unified[...])
            } else {
                same(old, new, session)
            }
            return
        }
        let lines = unified.split(separator: UInt8(ascii: "\n")).map { line in
            let text = DisplayText.harmless(String(decoding: line, as: UTF8.self))
            return switch line.first {
            case UInt8(ascii: "-"): palette.paint(text, .bad)
            case UInt8(ascii: "+"): palette.paint(text, .good)
            case UInt8(ascii: "@"): palette.paint(text, .faint)
            default: text
            }
        }
        show(lines, old, new, session)
    }

    private func show(_ lines: [String], _ old: Side, _ new: Side, _ session: Session) {
        guard !lines.isEmpty else { return same(old, new, session) }
        session.context.output((heading(old, new) + lines).map { $0 + "\n" }.joined())
    }

    private static func both(_ old: Side, _ new: Side) -> String {
        guard let first = old.number, let second = new.number else { return "\(old.text) and \(new.text)" }
        return "generations \(first) and \(second)"
    }

    private func heading(_ old: Side, _ new: Side) -> [String] {
        ["--- \(DisplayText.harmless(name)) \(old.title)", "+++ \(DisplayText.harmless(name)) \(new.title)"]
    }

    private func same(_ old: Side, _ new: Side, _ session: Session) {
        session.say("\(Self.both(old, new)) are the same")
    }
}
