import FreshetControl
import FreshetRender

/// The page of `report`: one HTML document without scripts and without other files.
///
/// All texts from outside are escaped by ``HTMLWriter`` and ``SVGWriter``. The Content-Security-Policy in the page
/// forbids everything except its own style sheet, also in case a text were not escaped.
struct ReportPage {
    let report: StatusReport
    let times: Times
    let title: String

    /// The most characters of an error: an origin chooses parts of some errors.
    private static let mostErrorCharacters = 1_000

    var text: String {
        var page = HTMLWriter()
        page.open("header")
        page.element("h1", title)
        made(&page)
        page.close("header")
        page.open("main")
        verdict(&page)
        pipelines(&page)
        if !report.rows.isEmpty {
            timeline(&page)
            graph(&page)
        }
        page.close("main")
        let policy =
            "default-src 'none'; style-src 'sha256-\(ReportStyle.digest)'; base-uri 'none'; form-action 'none'"
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="\(policy)">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta name="referrer" content="no-referrer">
            <meta name="robots" content="noindex">
            <title>\(SVGWriter.escaped(title))</title>
            <style>\(ReportStyle.text)</style>
            </head>
            <body>
            \(page.text)</body>
            </html>

            """
    }

    // MARK: The head

    private func made(_ page: inout HTMLWriter) {
        let daemon = report.daemon
        page.open("p", ("class", "note"))
        page.words("The state at ")
        page.element("time", times.absolute(times.now), ("datetime", Self.machineTime(times.now)))
        page.words(
            ". This page does not change by itself. freshetd \(daemon.version) has run for "
                + "\(TimeText.duration(max(0, times.now - daemon.since))).")
        page.close("p")
        page.element(
            "p", "Network: \(daemon.network)", ("class", daemon.networkReachable ? "note" : "is-bad"))
        if let reload = daemon.refusedReload {
            page.element(
                "p",
                "The last reload was refused, \(times.past(reload.at)): \(Count.text(reload.errors, "error")). "
                    + "The previous configuration stays active.", ("class", "is-bad"))
        }
    }

    private func verdict(_ page: inout HTMLWriter) {
        let (text, style): (String, String) =
            switch report.bad {
            case 0 where report.total == 0: ("There are no pipelines.", "is-busy")
            case 0: ("No pipeline fails.", "is-good")
            case 1: ("1 pipeline fails, or its copy is too old.", "is-bad")
            default: ("\(report.bad) pipelines fail, or their copies are too old.", "is-bad")
            }
        page.element("p", text, ("class", "verdict \(style)"))
    }

    // MARK: The table

    private func pipelines(_ page: inout HTMLWriter) {
        guard !report.rows.isEmpty else { return }
        page.element("h2", "Pipelines")
        page.open("table")
        let others = report.total - report.rows.count
        let rest = others > 0 ? " \(Count.text(others, "further pipeline")) not shown." : ""
        page.element(
            "caption", "\(Count.text(report.rows.count, "pipeline")); those that fail are first.\(rest)")
        page.open("thead")
        page.open("tr")
        for name in Self.columns { page.element("th", name, ("scope", "col")) }
        page.close("tr")
        page.close("thead")
        page.open("tbody")
        for row in report.rows { draw(row, &page) }
        page.close("tbody")
        page.close("table")
    }

    private static let columns = ["Pipeline", "State", "Copy", "Size", "Checked", "Next run", "Error, or causes"]

    private func draw(_ row: StatusReport.Row, _ page: inout HTMLWriter) {
        let view = SummaryView(summary: row.summary, times: times)
        let style =
            row.isBad ? "is-bad" : Self.styleName(Palette.Style(row.summary.state, row.summary.freshness))
        page.open("tr")
        page.element("th", row.summary.name, ("scope", "row"))
        page.element(
            "td", view.state, ("class", style.isEmpty ? "state" : "state \(style)"), ("data-label", Self.columns[1]))
        page.element("td", view.copy, ("class", "short"), ("data-label", Self.columns[2]))
        page.element(
            "td", row.summary.size.map(SizeText.bytes) ?? "-", ("class", "short"), ("data-label", Self.columns[3]))
        time(row.summary.lastCheck, Self.columns[4], &page)
        time(row.summary.nextRun, Self.columns[5], &page)
        let errors = row.errors
        page.open("td", ("data-label", errors.isEmpty ? "Causes" : "Error"))
        if errors.isEmpty { page.words(row.summary.causes.joined(separator: ", ")) }
        for error in errors {
            page.element(
                "p", DisplayText.truncated(error, to: Self.mostErrorCharacters), ("class", "is-bad"))
        }
        if let failure = row.details?.failure {
            page.element(
                "p", "\(Count.text(failure.attempts, "attempt")), since \(times.both(failure.since))",
                ("class", "note"))
        }
        page.close("td")
        page.close("tr")
    }

    private func time(_ instant: Int64?, _ label: String, _ page: inout HTMLWriter) {
        page.open("td", ("class", "short"), ("data-label", label))
        if let instant {
            page.element(
                "time", times.relative(instant), ("datetime", Self.machineTime(instant)),
                ("title", times.absolute(instant)))
        } else {
            page.words("-")
        }
        page.close("td")
    }

    private static func styleName(_ style: Palette.Style) -> String {
        switch style {
        case .good: "is-good"
        case .busy: "is-busy"
        case .bad: "is-bad"
        case .plain, .faint, .heading: ""
        }
    }

    /// Such as `2026-11-21T02:39:23Z`, for the attribute `datetime`.
    private static func machineTime(_ instant: Int64) -> String {
        // "Sat 2026-11-21 02:39:23 UTC".
        let words = TimeText.absolute(instant).split(separator: " ")
        return words.count == 4 ? "\(words[1])T\(words[2])Z" : ""
    }

    // MARK: The pictures

    private func timeline(_ page: inout HTMLWriter) {
        page.element("h2", "Timeline")
        page.element(
            "p", "Signals and runs; point at a mark to see its details. \(drawn)", ("class", "note"))
        picture(TimelineSVG(timeline: report.timeline, times: times).drawing, "Timeline", &page)
    }

    private func graph(_ page: inout HTMLWriter) {
        page.element("h2", "Graph")
        page.element(
            "p", "Which signals run which pipelines, and what they publish. \(drawn)", ("class", "note"))
        picture(GraphSVG(graph: report.graph).drawing, "Graph", &page)
    }

    private var drawn: String {
        report.total > StatusReport.mostDrawn
            ? "It has the first \(StatusReport.mostDrawn) pipelines of the table." : ""
    }

    /// A picture that scrolls on a narrow page, also with the keyboard.
    private func picture(_ drawing: SVGWriter, _ name: String, _ page: inout HTMLWriter) {
        page.open("div", ("class", "picture"), ("tabindex", "0"), ("role", "region"), ("aria-label", name))
        page.picture(drawing)
        page.close("div")
    }
}
