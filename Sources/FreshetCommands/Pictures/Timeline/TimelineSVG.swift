import FreshetControl
import FreshetRender

/// A timeline as SVG: bands behind all lanes, a mark for each firing, a bar for each run.
struct TimelineSVG {
    let timeline: Timeline
    let times: Times

    private static let width = 1_000.0
    private static let laneHeight = 26.0
    private static let top = 52.0
    private static let labels = 190.0
    private static let counts = 50.0

    /// The document.
    var text: String { drawing.text }

    var drawing: SVGWriter {
        let lanes = max(1, timeline.sources.count) + max(1, timeline.pipelines.count)
        let bottom = Self.top + 2 * 24 + Double(lanes) * Self.laneHeight
        let notes = timeline.remarks
        var svg = SVGWriter(
            width: Self.width, height: bottom + 46 + Double(notes.count) * 17,
            title: "Signals and runs from \(times.absolute(timeline.since)) to \(times.absolute(timeline.until))")
        svg.words(
            "\(times.absolute(timeline.since)) to \(times.absolute(timeline.until))", 12, 22, .ink, size: 13,
            isBold: true)
        drawBands(&svg, bottom)
        drawAxis(&svg, bottom)
        var y = Self.top
        func title(_ text: String, _ count: String) {
            svg.words(text, 12, y + 17, .faint, size: 11, isBold: true)
            svg.words(count, Self.width - 12, y + 17, .faint, .end, size: 11, isBold: true)
            y += 24
        }
        func lane(_ name: String, _ count: Int, _ offline: [Timeline.TimeRange]?) {
            if hasTargets {
                for stretch in offline ?? timeline.offline {
                    band(stretch, y, Self.laneHeight, .offline, "offline", &svg)
                }
            }
            svg.words(SVGWriter.cut(name, to: Self.labels - 20), 12, y + 17, hint: name)
            svg.words("\(count)", Self.width - 12, y + 17, .ink, .end)
            svg.line(Self.labels, y + 13, Self.width - Self.counts, y + 13, .faint)
        }
        func nothing(_ text: String) {
            svg.words(text, 12, y + 17, .faint)
            y += Self.laneHeight
        }
        title("SIGNALS", "fired")
        for source in timeline.sources {
            lane(source.name, source.firings.count, source.offline)
            drawFirings(source, &svg, y)
            y += Self.laneHeight
        }
        if timeline.sources.isEmpty { nothing("no signal fired") }
        title("PIPELINES", "runs")
        for pipeline in timeline.pipelines {
            lane(pipeline.name, pipeline.runs, pipeline.offline)
            for part in pipeline.parts { draw(part, &svg, y) }
            y += Self.laneHeight
        }
        if timeline.pipelines.isEmpty { nothing("no events") }
        drawKey(&svg, bottom + 24)
        for (index, note) in notes.enumerated() {
            svg.words(SVGWriter.cut(note, to: Self.width - 24), 12, bottom + 46 + Double(index) * 17, .faint, size: 11)
        }
        return svg
    }

    private func x(_ instant: Int64) -> Double {
        let part = Double(instant - timeline.since) / Double(timeline.until - timeline.since)
        return Self.labels + max(0, min(1, part)) * (Self.width - Self.counts - Self.labels)
    }

    private func drawBands(_ svg: inout SVGWriter, _ bottom: Double) {
        let bands: [([Timeline.TimeRange], SVGWriter.Role, String)] = [
            (timeline.unseen, .unseen, "unknown"), (timeline.asleep, .asleep, "asleep"),
            (hasTargets ? [] : timeline.offline, .offline, "offline"),
        ]
        for (stretches, role, meaning) in bands {
            for stretch in stretches { band(stretch, Self.top - 8, bottom - Self.top + 8, role, meaning, &svg) }
        }
    }

    /// Whether lanes have offline times of their own targets: then each lane has its own bands.
    private var hasTargets: Bool {
        timeline.sources.contains { $0.offline != nil } || timeline.pipelines.contains { $0.offline != nil }
    }

    private func band(
        _ stretch: Timeline.TimeRange, _ y: Double, _ height: Double, _ role: SVGWriter.Role, _ meaning: String,
        _ svg: inout SVGWriter
    ) {
        svg.box(
            x(stretch.from), y, max(1, x(stretch.to) - x(stretch.from)), height, role,
            hint: "\(meaning), \(times.timeOfDay(stretch.from)) to \(times.timeOfDay(stretch.to))")
    }

    private func drawAxis(_ svg: inout SVGWriter, _ bottom: Double) {
        let axis = TimeAxis(from: timeline.since, to: timeline.until, most: 9) { times.timeZone($0).offset }
        for tick in axis.ticks {
            svg.line(x(tick.at), Self.top - 8, x(tick.at), bottom, .faint)
            svg.words(tick.label, x(tick.at), Self.top - 13, .faint, .middle, size: 11)
        }
    }

    /// Firings that are too close to distinguish are one mark with a number.
    private func drawFirings(_ source: Timeline.Source, _ svg: inout SVGWriter, _ y: Double) {
        var rest = source.firings[...]
        while let first = rest.first {
            let place = x(first.at)
            let group = rest.prefix { x($0.at) - place < 17 }
            rest = rest.dropFirst(group.count)
            let hint =
                group.count == 1
                ? [times.timeOfDay(first.at), first.detail].compactMap { $0 }.joined(separator: ": ")
                : "\(group.count) times, first at \(times.timeOfDay(first.at))"
            if group.count == 1 {
                svg.circle(place, y + 13, radius: 4, .busy, hint: hint)
            } else {
                svg.circle(place, y + 13, radius: 8, .busy, hint: hint)
                svg.words(
                    group.count > 99 ? "+" : "\(group.count)", place, y + 16.5, .ink, .middle, size: 9, isBold: true)
            }
        }
    }

    private func draw(_ part: Timeline.Part, _ svg: inout SVGWriter, _ y: Double) {
        let (from, to) = (x(part.from), x(part.to))
        let time = "\(times.timeOfDay(part.from)) to \(times.timeOfDay(part.to))"
        switch part.kind {
        case .waiting(let reason):
            svg.path(
                "M\(SVGWriter.number(from)) \(SVGWriter.number(y + 13))H\(SVGWriter.number(max(to, from + 2)))", .busy,
                width: 3, dashes: "3 3")
            svg.box(
                from, y + 8, max(2, to - from), 10, .offline, isPale: true,
                hint: "waiting for \(PipelineView.waiting(reason)), \(time)")
        case .held:
            svg.box(from, y + 8, max(2, to - from), 10, .unseen, hint: "held, \(time)")
        case .run(let outcome):
            let role: SVGWriter.Role =
                switch outcome {
                case .changed?: .good
                case .failed?: .bad
                case .unchanged?: .plain
                case .superseded?, .cancelled?, .unknown?, nil: .busy
                }
            let height = outcome == .unchanged ? 10.0 : 18.0
            svg.box(
                from - 1, y + 13 - height / 2, max(3, to - from), height, role, radius: 1,
                hint: hint(part, outcome, time))
        }
    }

    private func hint(_ part: Timeline.Part, _ outcome: RunOutcome?, _ time: String) -> String {
        guard let run = part.run else { return time }
        let causes = PipelineView.causes(run.causes, times).map { ", because of \($0)" } ?? ""
        let failure = run.failure.map { ": \($0)" } ?? ""
        return "run \(run.number) \(outcome?.rawValue ?? "in progress"), \(time)\(causes)\(failure)"
    }

    private func drawKey(_ svg: inout SVGWriter, _ y: Double) {
        var x = 12.0
        func entry(_ text: String, _ role: SVGWriter.Role, height: Double = 12, isRound: Bool = false) {
            if isRound {
                svg.circle(x + 5, y - 4, radius: 4, role)
            } else {
                svg.box(x, y - 4 - height / 2, 10, height, role, radius: 1)
            }
            svg.words(text, x + 15, y, .faint, size: 11)
            x += 15 + SVGWriter.width(of: text, size: 11) + 14
        }
        let kinds = Set(timeline.pipelines.flatMap(\.parts).map(\.kind))
        if !timeline.sources.isEmpty { entry("fired", .busy, isRound: true) }
        if kinds.contains(.run(.changed)) { entry("new copy", .good) }
        if kinds.contains(.run(.unchanged)) { entry("nothing new", .plain, height: 8) }
        if kinds.contains(.run(.failed)) { entry("failed", .bad) }
        if kinds.contains(where: { [.run(nil), .run(.superseded), .run(.cancelled), .run(.unknown)].contains($0) }) {
            entry("cut short, or in progress", .busy)
        }
        if kinds.contains(where: { if case .waiting = $0 { true } else { false } }) {
            entry("waiting", .busy, height: 3)
        }
        if kinds.contains(.held) { entry("held", .unseen) }
        let targets = timeline.sources.compactMap(\.offline) + timeline.pipelines.compactMap(\.offline)
        if !timeline.offline.isEmpty || targets.contains(where: { !$0.isEmpty }) { entry("offline", .offline) }
        if !timeline.asleep.isEmpty { entry("asleep", .asleep) }
        if !timeline.unseen.isEmpty { entry("unknown", .unseen) }
    }
}
