import FreshetControl
import FreshetRender

/// A fleet as SVG: each pipeline's way from the machine that fetched it through the fleet's record to the members, with
/// ages and counts. The bar of the members shows how many have the content.
struct FleetGraphSVG {
    let overview: FleetOverview
    let times: Times

    private static let rowHeight = 74.0
    private static let boxWidth = 200.0
    private static let barWidth = 260.0
    private static let gap = 54.0
    private static let left = 20.0

    var text: String {
        let (fetcher, head) = (Self.left, Self.left + Self.boxWidth + Self.gap)
        let members = head + Self.boxWidth + Self.gap
        let height = 60 + Double(max(1, overview.pipelines.count)) * Self.rowHeight + 30
        var svg = SVGWriter(
            width: members + Self.barWidth + 20, height: height,
            title: "Fleet \(overview.name): \(overview.machines) machines")
        svg.words("Fleet \(overview.name)", Self.left, 24, .ink, size: 15, isBold: true)
        for (x, title) in [(fetcher, "Fetched by"), (head, "Content"), (members, "\(overview.machines) machines")] {
            svg.words(title, x, 48, .faint)
        }
        for (index, pipeline) in overview.pipelines.enumerated() {
            let top = 60 + Double(index) * Self.rowHeight
            draw(pipeline, top, fetcher: fetcher, head: head, members: members, &svg)
        }
        svg.words(
            "Green: has the content. Grey: the roll-out has not reached it. Yellow: behind. Red: rejects it, or a hook fails.",
            Self.left, height - 12, .faint, size: 11)
        return svg.text
    }

    private func draw(
        _ pipeline: FleetPipelineStatus, _ top: Double, fetcher: Double, head: Double, members: Double,
        _ svg: inout SVGWriter
    ) {
        let height = Self.rowHeight - 20
        let y = top + height / 2
        svg.line(fetcher + Self.boxWidth, y, head, y)
        svg.line(head + Self.boxWidth, y, members, y)
        let checked = pipeline.checked.map { "checked \(times.past($0))" } ?? ""
        box(fetcher, top, height, .plain, pipeline.fetchedBy ?? "nobody", checked, &svg)
        let isBad = pipeline.rejection != nil || pipeline.rollOut?.halted == true
        let content = pipeline.number.map { number in
            "number \(number), \(SizeText.bytes(Int64(clamping: pipeline.size ?? 0)))"
        }
        box(
            head, top, height, isBad ? .bad : .good, pipeline.pipeline, pipeline.rejection ?? content ?? "", &svg)
        let parts: [(Int64, SVGWriter.Role, String)] = [
            (pipeline.current, .good, "current"), (pipeline.waiting, .plain, "wait for the roll-out"),
            (pipeline.behind, .busy, "behind"), (pipeline.failed, .bad, "failing"),
        ]
        let total = max(1, parts.map(\.0).reduce(0, +))
        var x = members
        for (count, role, name) in parts where count > 0 {
            let width = Self.barWidth * Double(count) / Double(total)
            svg.box(x, top + 6, width, 18, role, hint: "\(count) \(name)")
            x += width
        }
        let counts = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.2)" }.joined(separator: ", ")
        svg.words(
            SVGWriter.cut(counts.isEmpty ? "no reports" : counts, to: Self.barWidth, size: 11), members, top + 40, .ink,
            size: 11)
        if let rollOut = pipeline.rollOut {
            let state = rollOut.halted ? "roll-out halted at" : "roll-out:"
            svg.words("\(state) \(SVGWriter.number(rollOut.percentage)) %", members, top + 54, .faint, size: 11)
        }
    }

    private func box(
        _ x: Double, _ top: Double, _ height: Double, _ role: SVGWriter.Role, _ title: String, _ text: String,
        _ svg: inout SVGWriter
    ) {
        svg.paper(x, top, Self.boxWidth, height, radius: 5)
        svg.box(x, top, Self.boxWidth, height, role, radius: 5, isPale: true, hint: "\(title): \(text)")
        svg.words(SVGWriter.cut(title, to: Self.boxWidth - 16, size: 13), x + 9, top + 22, .ink, size: 13, isBold: true)
        svg.words(SVGWriter.cut(text, to: Self.boxWidth - 16), x + 9, top + 42, .faint)
    }
}
