import FreshetControl
import FreshetRender

/// Marble diagrams as SVG: a line for each source with a marble for each signal, boxes of gathered signals, and a bar
/// for each run.
struct MarblesSVG {
    let diagram: MarbleDiagram
    let times: Times

    private static let width = 1_000.0
    private static let labels = 190.0
    private static let laneHeight = 34.0
    private static let marble = 20.0
    /// The characters of a line below the picture.
    private static let sentenceColumns = 145
    /// The most signals that are explained below the picture.
    private static let mostSentences = 30

    var text: String {
        let story = MarbleStory(diagram: diagram, times: times)
        let layouts = diagram.episodes.map { Layout($0) }
        let texts = diagram.episodes.map { sentences($0, story) }
        let height =
            64
            + zip(layouts, texts).reduce(0.0) { sum, next in
                sum + 44 + Double(next.0.frames.lanes.count) * Self.laneHeight + Double(next.1.count) * 16 + 18
            } + Double(diagram.notes.count) * 17 + (diagram.episodes.isEmpty ? 30 : 0) + 24
        var svg = SVGWriter(width: Self.width, height: height, title: story.headline)
        svg.words(story.headline, 12, 24, .ink, size: 14, isBold: true)
        svg.words(diagram.terms.joined(separator: ", "), 12, 44, .faint, size: 11)
        var y = 60.0
        for (index, episode) in diagram.episodes.enumerated() {
            svg.words(story.title(episode, layouts[index].frames), 12, y + 14, .faint, size: 11)
            y += 26
            draw(episode, layouts[index], &svg, y)
            y += Double(layouts[index].frames.lanes.count) * Self.laneHeight + 16
            for sentence in texts[index] {
                svg.words(SVGWriter.cut(sentence, to: Self.width - 40, size: 11), 24, y, .ink, size: 11)
                y += 16
            }
            y += 20
        }
        if diagram.episodes.isEmpty {
            svg.words("No signals in this time.", 12, y + 14)
            y += 30
        }
        for note in diagram.notes {
            svg.words(SVGWriter.cut(note, to: Self.width - 24, size: 11), 12, y, .faint, size: 11)
            y += 17
        }
        svg.words(
            "A marble is a signal, a box is a group of signals, a bar is a run: green a new copy, grey nothing new, red failed, "
                + "yellow cut short or in progress.", 12, height - 10, .faint, size: 11)
        return svg.text
    }

    private func sentences(_ episode: MarbleDiagram.Episode, _ story: MarbleStory) -> [String] {
        let signals = story.signals(episode)
        let shown = signals.prefix(Self.mostSentences).map { "\($0.label)  \($0.text)" }
        let more =
            signals.count > shown.count ? ["and \(Count.text(signals.count - shown.count, "further signal"))"] : []
        let others =
            episode.runs.indices.prefix(MarbleFrames.mostRuns).map { story.run($0, episode) }
            + story.withoutRun(episode)
        return shown + more + others.flatMap { WrappedText.lines($0, columns: Self.sentenceColumns) }
    }

    /// The positions of the frames of an episode.
    private struct Layout {
        let frames: MarbleFrames
        /// The left edge of each frame, and the end of the last.
        let edges: [Double]

        init(_ episode: MarbleDiagram.Episode) {
            let available = MarblesSVG.width - MarblesSVG.labels - 20
            frames = MarbleFrames.fitting(episode, most: 78) { frames in
                // In columns of ten pixels.
                Layout.widths(frames, episode).reduce(0) { $0 + Int($1 / 10) }
            }
            let widths = Layout.widths(frames, episode)
            // The remaining width is divided among all frames.
            let extra = max(0, available - widths.reduce(0, +)) / Double(max(1, widths.count))
            var next = MarblesSVG.labels
            edges =
                widths.map { width in
                    defer { next += width + extra }
                    return next
                } + [next]
        }

        /// The least width of each frame, in pixels: the marbles of a frame are side by side.
        private static func widths(_ frames: MarbleFrames, _ episode: MarbleDiagram.Episode) -> [Double] {
            (0..<frames.count).map { frame in
                frames.lanes.map { lane in
                    let marbles = lane.events[frame].count { if case .marble = $0 { true } else { false } }
                    let boxes = lane.events[frame].reduce(0.0) { sum, event in
                        if case .gathered = event { sum + MarblesSVG.boxWidth(event, episode) + 4 } else { sum }
                    }
                    return max(boxes, Double(marbles) * MarblesSVG.marble)
                }.max().map { max($0, 10) } ?? 10
            }
        }
    }

    private func draw(_ episode: MarbleDiagram.Episode, _ layout: Layout, _ svg: inout SVGWriter, _ top: Double) {
        let frames = layout.frames
        func y(_ lane: Int) -> Double { top + Double(lane) * Self.laneHeight + Self.laneHeight / 2 }
        var marbles: [Int: (x: Double, y: Double)] = [:]
        for (index, lane) in frames.lanes.enumerated() {
            svg.words(SVGWriter.cut(lane.name, to: Self.labels - 24), 12, y(index) + 4, hint: lane.name)
            svg.line(Self.labels, y(index), Self.width - 20, y(index), .faint)
            for (frame, events) in lane.events.enumerated() {
                var x = layout.edges[frame] + Self.marble / 2
                for event in events {
                    guard case .marble(let place) = event else { continue }
                    marbles[place] = (x, y(index))
                    x += Self.marble
                }
            }
        }
        let gathered = frames.lanes.firstIndex { $0.kind == .gathered } ?? 0
        // Each run begins below its box.
        var beginnings: [Int: Double] = [:]
        for (frame, events) in frames.lanes[gathered].events.enumerated() {
            var left = layout.edges[frame] + 1
            for event in events {
                guard case .gathered(let places, let run) = event else { continue }
                let width = Self.boxWidth(event, episode)
                let x = left + width / 2
                left += width + 4
                for place in places {
                    guard let marble = marbles[place] else { continue }
                    svg.path(
                        "M\(SVGWriter.number(marble.x)) \(SVGWriter.number(marble.y + 9))"
                            + "L\(SVGWriter.number(x)) \(SVGWriter.number(y(gathered) - 9))", .faint)
                }
                beginnings[run] = x
                svg.line(x, y(gathered) + 9, x, y(gathered + 1 + run), .faint)
                drawBox(event, episode, x, y(gathered), &svg)
            }
        }
        for (place, marble) in marbles.sorted(by: { $0.key < $1.key }) { draw(episode.marbles[place], marble, &svg) }
        for (index, lane) in frames.lanes.enumerated() {
            guard case .run(let place) = lane.kind else { continue }
            draw(episode.runs[place], lane, layout, from: beginnings[place], y(index), &svg)
        }
    }

    private static func boxName(_ event: MarbleFrames.Event, _ episode: MarbleDiagram.Episode) -> String {
        MarbleFrames.text(event, episode).filter { $0 != "{" && $0 != "}" }
    }

    private static func boxWidth(_ event: MarbleFrames.Event, _ episode: MarbleDiagram.Episode) -> Double {
        max(18, SVGWriter.width(of: boxName(event, episode), size: 11) + 10)
    }

    private func drawBox(
        _ event: MarbleFrames.Event, _ episode: MarbleDiagram.Episode, _ x: Double, _ y: Double, _ svg: inout SVGWriter
    ) {
        let name = Self.boxName(event, episode)
        let width = Self.boxWidth(event, episode)
        svg.paper(x - width / 2, y - 9, width, 18, radius: 9)
        svg.box(x - width / 2, y - 9, width, 18, .busy, radius: 9, isPale: true)
        svg.words(name, x, y + 4, .ink, .middle, size: 11, isBold: true)
    }

    private func draw(_ marble: MarbleDiagram.Marble, _ place: (x: Double, y: Double), _ svg: inout SVGWriter) {
        // A signal without a run is an empty circle.
        let isForRun: Bool = if case .run = marble.outcome { true } else { false }
        svg.paper(place.x - 9, place.y - 9, 18, 18, radius: 9)
        let hint = [times.timeOfDay(marble.at), marble.detail].compactMap { $0 }.joined(separator: ": ")
        svg.circle(place.x, place.y, radius: 9, isForRun ? .busy : .plain, isPale: true, hint: hint)
        let count = marble.count > 1 ? "\(marble.count)" : ""
        svg.words(
            marble.label + count, place.x, place.y + 4, isForRun ? .ink : .faint, .middle, size: count.isEmpty ? 11 : 8,
            isBold: true)
    }

    private func draw(
        _ run: MarbleDiagram.Run, _ lane: MarbleFrames.Lane, _ layout: Layout, from begin: Double?, _ y: Double,
        _ svg: inout SVGWriter
    ) {
        let first = lane.events.firstIndex { $0.contains(.begins) } ?? 0
        let last = lane.events.lastIndex { !$0.isEmpty } ?? first
        let from = begin ?? layout.edges[first] + 10
        let to =
            run.ended == nil
            ? layout.edges[layout.edges.count - 1] : max(from + 8, layout.edges[last] + (last > first ? 10 : 18))
        let role: SVGWriter.Role =
            switch run.outcome {
            case .changed?: .good
            case .failed?: .bad
            case .unchanged?: .plain
            case .superseded?, .cancelled?, .unknown?, nil: .busy
            }
        svg.box(from, y - 8, to - from, 16, role, radius: 2)
        let words: String =
            switch run.outcome {
            case .changed?: run.generation.map { "generation \($0)" } ?? "changed"
            case .unchanged?: "nothing new"
            case .failed?: "failed"
            case .superseded?: "superseded"
            case .cancelled?: "cancelled"
            case .unknown?, nil: run.ended == nil ? "in progress" : ""
            }
        let width = SVGWriter.width(of: words, size: 11)
        // In the bar if it fits; else to its right, or to its left at the edge of the picture.
        if width + 12 < to - from {
            svg.words(words, (from + to) / 2, y + 4, .ink, .middle, size: 11)
        } else if to + 6 + width > Self.width - 12 {
            svg.paper(from - 8 - width, y - 7, width + 4, 14)
            svg.words(words, from - 6, y + 4, .faint, .end, size: 11)
        } else {
            svg.paper(to + 4, y - 7, width + 4, 14)
            svg.words(words, to + 6, y + 4, .faint, size: 11)
        }
    }
}
