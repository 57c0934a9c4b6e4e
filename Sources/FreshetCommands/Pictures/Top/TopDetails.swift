import FreshetControl
import FreshetRender

/// What the page of one pipeline in `top` shows below the status: the last runs, and how the content changed.
struct TopDetails: Hashable, Sendable {
    struct Line: Hashable, Sendable {
        var text: String
        var style: Palette.Style = .plain
    }

    /// The most runs.
    static let mostRuns = 10
    /// The largest content, in bytes, whose difference is shown: keys wait while it is read.
    static let mostBytes: Int64 = 256 << 10
    /// The most lines of a difference, and the most characters of a line: all of it is what `diff` is for.
    static let mostLines = 200
    static let mostCharacters = 500

    var name: String
    /// The run and the generation that the page is about: if the pipeline has others, the page is requested again.
    var run: Int64?
    var generation: Int64?
    /// The last runs, newest first.
    var runs: [RunStatus] = []
    /// The heading above the difference.
    var title = ""
    var difference: [Line] = []

    init(of pipeline: PipelineStatus) {
        name = pipeline.name
        run = pipeline.lastRun?.number
        generation = pipeline.generation?.number
    }

    /// Whether the page is about the present state of a pipeline.
    func matches(_ pipeline: PipelineStatus) -> Bool {
        name == pipeline.name && run == pipeline.lastRun?.number && generation == pipeline.generation?.number
    }

    /// Takes the runs that have ended out of events.
    mutating func take(_ events: [ControlEvent]) {
        let ended = events.filter { $0.kind == .runEnded && $0.pipeline == name }.compactMap(\.run)
        runs = Array(ended.suffix(Self.mostRuns).reversed())
    }

    /// Takes the lines of a difference.
    mutating func take(_ lines: [String]) {
        difference = lines.prefix(Self.mostLines).map { text in
            // Items that changed have their old and new value below, indented.
            let mark = text.first { $0 != " " }
            let style: Palette.Style = mark == "-" ? .bad : mark == "+" ? .good : mark == "@" ? .faint : .plain
            return Line(text: DisplayText.harmless(String(text.prefix(Self.mostCharacters))), style: style)
        }
        if lines.count > Self.mostLines {
            let rest = Count.text(lines.count - Self.mostLines, "further line")
            difference.append(Line(text: "\(rest); 'freshetctl diff \(name)' prints all", style: .faint))
        }
    }
}

extension TopDetails {
    /// Requests everything from the daemon. Contents that cannot be compared have a sentence instead.
    init(of pipeline: PipelineStatus, _ client: ControlClient) throws(ControlClient.Failure) {
        self.init(of: pipeline)
        take(try client.recentEvents([pipeline.name]).events)
        let history: ControlMessage.PastGenerations
        do throws(ControlClient.Failure) {
            history = try client.history(of: pipeline.name)
        } catch .refused {
            // The pipeline is gone, or its configuration has errors.
            return
        } catch {
            throw error
        }
        let kept = history.generations.filter(\.kept)
        guard let new = kept.first(where: { $0.current }), let old = kept.first(where: { $0.number < new.number })
        else {
            title = "No earlier content is kept to compare with."
            return
        }
        title = "From generation \(old.number) to \(new.number)"
        guard old.size <= Self.mostBytes, new.size <= Self.mostBytes else {
            title += ": too large for this page; 'freshetctl diff \(pipeline.name)' compares"
            return
        }
        do throws(ControlClient.Failure) {
            let before = try Self.bytes(of: old, pipeline.name, client)
            let after = try Self.bytes(of: new, pipeline.name, client)
            take(Self.lines(before, after, key: history.key))
        } catch .refused {
            title += ": the content may not be read"
        } catch {
            throw error
        }
    }

    private static func bytes(
        of generation: PastGeneration, _ name: String, _ client: ControlClient
    ) throws(ControlClient.Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        try client.read(generation.number, of: name) { piece in
            bytes += piece
            return Int64(bytes.count) <= mostBytes
        }
        return bytes
    }

    private static func lines(_ before: [UInt8], _ after: [UInt8], key: String?) -> [String] {
        if let path = key.flatMap(KeyPath.init), let old = try? ItemList(before, key: path),
            let new = try? ItemList(after, key: path)
        {
            let view = ItemDifferenceView(difference: ItemDifference(from: old, to: new), old: old, new: new)
            return view.lines(Palette(isColourful: false))
        }
        guard before != after else { return ["the contents are the same"] }
        guard !before.contains(0), !after.contains(0) else { return ["the contents differ, and are not text"] }
        guard let unified = try? LineDifference.unified(before, after) else { return ["diff(1) failed"] }
        return unified.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    }
}
