import ArgumentParser
import FreshetControl
import FreshetRender

/// Compares two contents of a pipeline, and prints the difference.
struct Comparison {
    /// One of the two contents.
    struct Side {
        /// The number of the generation; nil for rejected content.
        var number: Int64?
        /// Bytes.
        var size: Int64
        var digest: String

        init(_ generation: PastGeneration) {
            (number, size, digest) = (generation.number, generation.size, generation.digest)
        }

        init(_ generation: GenerationStatus) {
            (number, size, digest) = (generation.number, generation.size, generation.digest)
        }

        init(_ candidate: CandidateStatus) { (size, digest) = (candidate.size, candidate.digest) }

        var text: String { number.map { "generation \($0)" } ?? "the candidate" }
        /// In a heading.
        var title: String { number.map(String.init) ?? "candidate \(digest)" }
    }

    /// The key that identifies items.
    struct Key {
        let path: KeyPath
        /// Whether the key is from the configuration: then content that is not a list of such items is compared line by
        /// line.
        let isConfigured: Bool

        /// Nil if neither the command line nor the configuration has a key.
        init?(option: String?, configured: String?) {
            guard let path = (option ?? configured).flatMap(KeyPath.init) else { return nil }
            self.path = path
            isConfigured = option == nil
        }
    }

    /// The largest content, in bytes, that is compared: both contents are in memory.
    static let mostBytes: Int64 = 64 << 20

    /// The key of items; nil to compare line by line.
    var key: Key?
    private let name: String
    private let options: GlobalOptions
    private let session: Session
    /// The prefix of each JSON text.
    private let mark: String

    /// - Parameters:
    ///   - key: the key of items; nil to compare line by line.
    ///   - isSequence: whether the JSON texts form a sequence (RFC 7464).
    init(
        of name: String, by key: Key?, _ options: GlobalOptions, _ session: Session, isSequence: Bool = false
    ) {
        self.name = name
        self.key = key
        self.options = options
        self.session = session
        mark = isSequence ? "\u{1E}" : ""
    }

    static func validate(_ key: String?) throws {
        if let key, KeyPath(key) == nil {
            throw ValidationError("--key needs a path such as .id or .meta.name, or . for the item itself.")
        }
    }

    func show(_ old: Side, _ before: [UInt8], _ new: Side, _ after: [UInt8]) throws(CommandFailure) {
        guard let key else { return try compareLines(before, after, old, new) }
        let lists: (ItemList, ItemList)
        do throws(CommandFailure) {
            lists = (try items(before, key.path, old), try items(after, key.path, new))
        } catch {
            guard key.isConfigured else { throw error }
            return try compareLines(before, after, old, new)
        }
        let view = ItemDifferenceView(
            difference: ItemDifference(from: lists.0, to: lists.1), old: lists.0, new: lists.1)
        if options.json {
            let digest = new.number == nil ? new.digest : nil
            session.context.output(mark + view.json(from: old.number ?? 0, to: new.number, candidate: digest) + "\n")
        } else {
            show(view.lines(session.palette), old, new)
            if !view.difference.changes.isEmpty, !options.noLegend { session.context.output("\n\(view.total)\n") }
        }
    }

    private func print(_ lines: Lines) { session.context.output(mark + ControlJSON.text(of: lines) + "\n") }

    /// Reads a whole content.
    func content(of side: Side, _ client: ControlClient) throws(CommandFailure) -> [UInt8] {
        let content: [UInt8]? = try session.callDaemon { () throws(ControlClient.Failure) in
            try bytes(of: side, client)
        }
        guard let content else { throw tooLarge(side) }
        return content
    }

    /// Reads a whole content; nil if it is too large to be compared.
    func bytes(of side: Side, _ client: ControlClient) throws(ControlClient.Failure) -> [UInt8]? {
        guard side.size <= Self.mostBytes else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(side.size))
        let take = { (piece: [UInt8]) in
            bytes += piece
            return bytes.count <= Self.mostBytes
        }
        if let number = side.number {
            try client.read(number, of: name, each: take)
        } else {
            try client.readCandidate(of: name, each: take)
        }
        return bytes
    }

    func tooLarge(_ side: Side) -> CommandFailure {
        CommandFailure(
            .failure,
            DisplayText.harmless(
                "\(side.text) has \(SizeText.bytes(side.size)); the limit for a comparison is "
                    + "\(SizeText.bytes(Self.mostBytes)); "
                    + "'freshetctl get \(name) \(side.number.map { "--generation \($0)" } ?? "--candidate")' "
                    + "prints it for another program"))
    }

    private func items(
        _ bytes: [UInt8], _ path: KeyPath, _ generation: Side
    ) throws(CommandFailure) -> ItemList {
        do throws(ItemListError) {
            return try ItemList(bytes, key: path)
        } catch {
            throw CommandFailure(
                .failure,
                DisplayText.harmless(
                    "the content of \(generation.text) \(error); without --key it is compared line by line"
                ))
        }
    }

    // MARK: Output

    private struct Lines: Encodable {
        var from: Int64?
        /// Nil for rejected content.
        var to: Int64?
        /// The digest of rejected content.
        var candidate: String?
        var by = "line"
        var hunks: [LineHunk]
    }

    private func compareLines(
        _ before: [UInt8], _ after: [UInt8], _ old: Side, _ new: Side
    ) throws(CommandFailure) {
        let isSame = before == after
        if !isSame, before.contains(0) || after.contains(0) {
            throw CommandFailure(
                .failure, "\(Self.both(old, new)) differ, and are not text")
        }
        let unified: [UInt8]
        do throws(LineDifference.Failure) {
            unified = isSame ? [] : try LineDifference.unified(before, after)
        } catch {
            throw CommandFailure(.failure, DisplayText.harmless(error.message))
        }
        if options.json {
            return print(
                Lines(
                    from: old.number, to: new.number, candidate: new.number == nil ? new.digest : nil,
                    hunks: LineHunk.hunks(of: unified)))
        }
        let palette = session.palette
        // Only a terminal gets harmless text; a file or patch(1) needs the exact bytes.
        guard session.context.isTerminal || palette.isColourful else {
            if !unified.isEmpty {
                session.context.output(heading(old, new).map { $0 + "\n" }.joined())
                _ = session.context.outputBytes(unified[...])
            } else {
                same(old, new)
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
        show(lines, old, new)
    }

    private func show(_ lines: [String], _ old: Side, _ new: Side) {
        guard !lines.isEmpty else { return same(old, new) }
        session.context.output((heading(old, new) + lines).map { $0 + "\n" }.joined())
    }

    private static func both(_ old: Side, _ new: Side) -> String {
        guard let first = old.number, let second = new.number else { return "\(old.text) and \(new.text)" }
        return "generations \(first) and \(second)"
    }

    private func heading(_ old: Side, _ new: Side) -> [String] {
        ["--- \(DisplayText.harmless(name)) \(old.title)", "+++ \(DisplayText.harmless(name)) \(new.title)"]
    }

    private func same(_ old: Side, _ new: Side) {
        session.message("\(Self.both(old, new)) are the same")
    }
}
