import ArgumentParser
import FreshetControl
import FreshetRender

struct Diff: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Show how two generations of a pipeline differ.",
        discussion: """
            Without numbers, the current copy and the newest one before it that is kept; with one, that one and the current \
            copy. Line by line, by diff(1); with --key, item by item of JSON arrays: what was added, removed, changed and \
            moved. Then items that differ in the space between their parts alone are the same. The exit status is 0 whether \
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
    @OptionGroup var options: GlobalOptions

    func validate() throws {
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
                session.context.output(view.json(from: old.number, to: new.number) + "\n")
            } else {
                show(view.lines(session.palette), old, new, session)
                if !view.difference.changes.isEmpty, !options.noLegend { session.context.output("\n\(view.total)\n") }
            }
        } else {
            try compareLines(before, after, old, new, session)
        }
    }

    // MARK: Which, and what is in them

    private func chosen(
        _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> (old: PastGeneration, new: PastGeneration) {
        let name = name
        let generations = try session.asking { () throws(ControlClient.Failure) in try client.history(of: name) }
            .generations
        let kept = generations.filter(\.kept)
        func missing(_ number: Int64?) -> CommandFailure {
            session.failure(
                .refused(.noSuchGeneration(name: name, number: number, kept: kept.map(\.number).sorted())))
        }
        let new = to.map { number in kept.first { $0.number == number } } ?? kept.first(where: \.current)
        guard let new else {
            if let to { throw missing(to) }
            throw session.failure(.refused(.noGeneration(name: name)))
        }
        let old = from.map { number in kept.first { $0.number == number } } ?? kept.first { $0.number < new.number }
        guard let old else { throw missing(from) }
        return (old, new)
    }

    private func content(
        _ generation: PastGeneration, _ session: Session, _ client: ControlClient
    ) throws(CommandFailure) -> [UInt8] {
        guard generation.size <= Self.mostBytes else {
            throw CommandFailure(
                .failure,
                DisplayText.harmless(
                    "generation \(generation.number) has \(SizeText.bytes(generation.size)), and 'diff' takes "
                        + "\(SizeText.bytes(Self.mostBytes)); 'freshetctl get \(name) --generation \(generation.number)' "
                        + "hands it to another program"))
        }
        let name = name
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(generation.size))
        try session.asking { () throws(ControlClient.Failure) in
            try client.read(generation.number, of: name) { piece in
                bytes += piece
                return bytes.count <= Self.mostBytes
            }
        }
        return bytes
    }

    private func items(
        _ bytes: [UInt8], _ path: KeyPath, _ generation: PastGeneration
    ) throws(CommandFailure) -> ItemList {
        do throws(ItemListFault) {
            return try ItemList(bytes, key: path)
        } catch {
            throw CommandFailure(
                .failure,
                DisplayText.harmless(
                    "the content of generation \(generation.number) \(error); without --key it is compared line by line"
                ))
        }
    }

    // MARK: Showing

    private struct Lines: Encodable {
        var from: Int64
        var to: Int64
        var by = "line"
        var hunks: [LineHunk]
    }

    private func compareLines(
        _ before: [UInt8], _ after: [UInt8], _ old: PastGeneration, _ new: PastGeneration, _ session: Session
    ) throws(CommandFailure) {
        let isSame = before == after
        if !isSame, before.contains(0) || after.contains(0) {
            throw CommandFailure(
                .failure, "generations \(old.number) and \(new.number) differ, and are no text to be shown")
        }
        let unified: [UInt8]
        do throws(LineDifference.Failure) {
            unified = isSame ? [] : try LineDifference.unified(before, after)
        } catch {
            throw CommandFailure(.failure, DisplayText.harmless(error.message))
        }
        if options.json {
            return session.print(
                json: Lines(from: old.number, to: new.number, hunks: LineHunk.hunks(of: unified)))
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

    private func show(_ lines: [String], _ old: PastGeneration, _ new: PastGeneration, _ session: Session) {
        guard !lines.isEmpty else { return same(old, new, session) }
        session.context.output((heading(old, new) + lines).map { $0 + "\n" }.joined())
    }

    private func heading(_ old: PastGeneration, _ new: PastGeneration) -> [String] {
        ["--- \(DisplayText.harmless(name)) \(old.number)", "+++ \(DisplayText.harmless(name)) \(new.number)"]
    }

    private func same(_ old: PastGeneration, _ new: PastGeneration, _ session: Session) {
        session.say("generations \(old.number) and \(new.number) are the same")
    }
}
