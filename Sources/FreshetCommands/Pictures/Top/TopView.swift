import FreshetControl
import FreshetRender

/// A screen of `top`, as lines.
struct TopView {
    let model: TopModel
    let times: Times
    let palette: Palette

    /// The number of lines that are not rows of the list: the head, the titles and the last line.
    static let otherLines = 6

    /// - Parameter widths: the widths of the columns so far; they only grow, so that columns do not jump.
    func lines(columns: Int, rows: Int, widths: inout [Int]) -> [String] {
        let glyphs = Glyphs(palette.charset)
        let body: [String]
        switch model.page {
        case .list: body = list(columns, glyphs, &widths)
        case .help: body = Self.help
        case .details: body = Array(details(columns, glyphs).dropFirst(model.detailsOffset))
        }
        var lines = Array((head(columns, glyphs) + body).prefix(max(1, rows - 1)))
        while lines.count < rows - 1 { lines.append("") }
        if rows > 1 { lines.append(foot(columns, glyphs)) }
        return lines
    }

    // MARK: Parts

    private func head(_ columns: Int, _ glyphs: Glyphs) -> [String] {
        let time = String(times.timeOfDay(times.now).prefix(8))
        if model.isOld { return headOfOld(time, columns, glyphs) }
        guard let daemon = model.daemon else { return [line("", right: time, .plain, columns, glyphs), "", "", ""] }
        let up = TimeText.duration(max(0, times.now - daemon.since))
        let counts = daemon.pipelines
        let states = [
            (counts.failed, "failed"), (counts.loading, "loading"), (counts.waiting, "waiting"),
            (counts.held, "held"), (counts.idle, "idle"), (counts.loaded, "loaded"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let signal = model.signal.map { event in
            let number = event.number.map { " #\($0)" } ?? ""
            let pipeline = event.pipeline.map { " for \($0)" } ?? ""
            return "\(times.relative(event.at)): \(event.source ?? event.signal ?? "")\(number)\(pipeline)"
                + (event.detail.map { ": \($0)" } ?? "")
        }
        return [
            line("freshetd \(daemon.version), up \(up)", right: time, .plain, columns, glyphs),
            line("  Network: \(daemon.network)", .plain, columns, glyphs, daemon.networkReachable ? .plain : .bad),
            line(
                "Pipelines: \(counts.total)" + (states.isEmpty ? "" : ": " + states.joined(separator: ", ")), .plain,
                columns, glyphs, counts.failed > 0 ? .bad : .plain),
            line("   Signal: \(signal ?? "none since top started")", .plain, columns, glyphs),
        ]
    }

    /// The head while the status is old: the daemon is gone, or hangs.
    private func headOfOld(_ time: String, _ columns: Int, _ glyphs: Glyphs) -> [String] {
        var what = "freshetd does not answer"
        if let since = model.silentSince { what += ", for \(TimeText.duration(max(0, times.now - since)))" }
        if model.failure != nil, model.isRefusing { what = "freshetd refuses the request" }
        let old = model.answeredAt.map { "The status below is from \(times.timeOfDay($0).prefix(8))." } ?? ""
        var lines = WrappedText.lines(glyphs.text(model.failure ?? ""), columns: columns)
        if lines.count > 2 { lines = [lines[0], lines[1...].joined(separator: " ")] }
        lines = [""] + lines + [old, "", ""]
        return [line(what, right: time, .bad, columns, glyphs)]
            + lines[1...3].map { line($0, .plain, columns, glyphs) }
    }

    private func line(
        _ text: String, right: String = "", _ style: Palette.Style, _ columns: Int, _ glyphs: Glyphs,
        _ whole: Palette.Style = .plain
    ) -> String {
        let width = columns - (right.isEmpty ? 0 : right.count + 1)
        let shown = glyphs.text(text, columns: max(0, width))
        let padding = String(repeating: " ", count: max(1, columns - DisplayText.width(of: shown) - right.count))
        return palette.paint(shown, whole == .plain ? style : whole) + (right.isEmpty ? "" : padding + right)
    }

    private static let columns: [Table.Column] = [
        .init("NAME", shrinksTo: 12), .init("STATE", shrinksTo: 10), .init("GEN", .right, goes: 3),
        .init("SIZE", .right, goes: 4), .init("CHECKED", shrinksTo: 7), .init("NEXT", shrinksTo: 6, goes: 1),
        .init("LAST RUN", shrinksTo: 8, goes: 2),
    ]

    private func list(_ columns: Int, _ glyphs: Glyphs, _ widths: inout [Int]) -> [String] {
        let visible = model.visible
        var titles = Self.columns
        let cells = visible.map(row)
        widths = titles.indices.map { column in
            let now =
                ([titles[column].title] + cells.map { $0[column].text }).map { DisplayText.width(of: glyphs.text($0)) }
                .max() ?? 0
            return max(now, column < widths.count ? widths[column] : 0)
        }
        // The last column gets the remaining width.
        for column in titles.indices.dropLast() { titles[column].least = widths[column] }
        let table = Table(columns: titles, rows: cells)
        let plain = table.lines(
            width: columns, legend: true, palette: Palette(isColourful: false, charset: palette.charset))
        var lines =
            model.isOld
            ? plain.map { palette.paint(DisplayText.truncated($0, to: columns), .faint) }
            : table.lines(width: columns, legend: true, palette: palette)
        for (index, pipeline) in visible.enumerated() where pipeline.name == model.chosen && index + 1 < lines.count {
            let text = DisplayText.truncated(plain[index + 1], to: columns)
            let padding = String(repeating: " ", count: max(0, columns - DisplayText.width(of: text)))
            // Reverse video, also without colours.
            lines[index + 1] = "\u{1B}[7m\(text)\(padding)\u{1B}[0m"
        }
        if visible.isEmpty {
            let none = model.isOld ? "" : "no pipelines"
            lines.append(model.filter.isEmpty ? none : glyphs.text("no name contains '\(model.filter)'"))
        }
        return lines
    }

    private func row(_ pipeline: PipelineStatus) -> [Table.Cell] {
        var state = pipeline.state.rawValue
        if let reason = pipeline.waitingFor, pipeline.state == .waiting { state += ":\(reason.rawValue)" }
        if pipeline.state == .loading, let fraction = ProgressView.fraction(pipeline) {
            state += " \(Int(max(0, min(1, fraction)) * 100)) %"
        }
        if let freshness = pipeline.freshness, freshness != .fresh { state += "; \(freshness.rawValue)" }
        let run = pipeline.lastRun.map { run in
            let outcome = run.outcome?.rawValue ?? "in progress"
            let duration = run.durationUSec.map { " \(TimeText.duration($0))" } ?? ""
            if run.outcome == .failed, let failure = pipeline.failure?.message ?? run.failure {
                return "\(outcome)\(duration): \(failure)"
            }
            let causes = pipeline.lastCauses.map(\.signal).joined(separator: ", ")
            return outcome + duration + (causes.isEmpty ? "" : ", \(causes)")
        }
        return [
            Table.Cell(pipeline.name), Table.Cell(state, Palette.Style(pipeline.state, pipeline.freshness)),
            Table.Cell(pipeline.generation.map { "\($0.number)" } ?? "-"),
            Table.Cell(pipeline.generation.map { SizeText.bytes($0.size) } ?? "-"),
            Table.Cell(pipeline.lastCheck.map { Self.short($0, times) } ?? "-"),
            Table.Cell(pipeline.nextRun.map { Self.short($0.at, times) } ?? "-"), Table.Cell(run ?? "-"),
        ]
    }

    /// A distance in one unit, to keep the columns narrow.
    private static func short(_ instant: Int64, _ times: Times) -> String {
        let seconds = abs(instant - times.now) / 1_000_000
        switch seconds {
        case ..<100: return "\(seconds)s"
        case ..<6_000: return "\(seconds / 60)min"
        case ..<172_800: return "\(seconds / 3_600)h"
        default: return "\(seconds / 86_400)d"
        }
    }

    private func details(_ columns: Int, _ glyphs: Glyphs) -> [String] {
        guard let pipeline = model.chosenPipeline else { return ["", "this pipeline is gone"] }
        let status = PipelineView(
            pipeline: pipeline, times: times, palette: Palette(isColourful: false, charset: palette.charset),
            hasBars: true, columns: columns)
        var lines = [""] + status.lines.map { glyphs.text($0, columns: columns) }
        func add(_ text: String, _ style: Palette.Style = .plain) {
            lines.append(palette.paint(glyphs.text(text, columns: columns), model.isOld ? .faint : style))
        }
        guard let details = model.details, details.name == pipeline.name else { return lines }
        lines.append("")
        add(details.runs.isEmpty ? "No run has ended since the daemon started." : "Last runs:", .heading)
        for run in details.runs {
            let causes = PipelineView.causes(run.causes, times).map { ", because of \($0)" } ?? ""
            let failure = run.failure.map { ": \($0)" } ?? causes
            add("  \(PipelineView.run(run, times))\(failure)", run.outcome == .failed ? .bad : .plain)
        }
        guard !details.title.isEmpty else { return lines }
        lines.append("")
        add(details.title, .heading)
        for line in details.difference { add("  " + line.text, line.style) }
        return lines
    }

    /// The number of lines of the page of a pipeline that do not fit.
    func hiddenDetailLines(columns: Int, rows: Int) -> Int {
        guard model.page == .details else { return 0 }
        let glyphs = Glyphs(palette.charset)
        return max(0, details(columns, glyphs).count - (rows - 1 - head(columns, glyphs).count))
    }

    private static let help = [
        "",
        "  q        quit                          s   sort by the next column",
        "  /        filter by name; Esc: all      S   reverse the order",
        "  r        refresh the pipeline          Enter  show its page: q or Esc closes it",
        "  arrows, PgUp, PgDn, Home, End          select a pipeline",
        "  Ctrl-L   redraw                        Ctrl-Z  stop; 'fg' continues",
        "",
        "  CHECKED: time since the last successful check; NEXT: time until the next run;",
        "  LAST RUN: its outcome, its duration, and its causes or the error.",
    ]

    private func foot(_ columns: Int, _ glyphs: Glyphs) -> String {
        if model.isTyping {
            return glyphs.text("filter: \(model.filter)_   Enter keeps it, Esc shows all", columns: columns)
        }
        if let message = model.message { return glyphs.text(message, columns: columns) }
        if model.page != .list {
            let more = model.page == .details && model.hiddenDetailLines > 0 ? "   arrows, PgDn: more lines" : ""
            return palette.paint(glyphs.text("q, Esc: back to the list\(more)", columns: columns), .faint)
        }
        let filter = model.filter.isEmpty ? "" : " with '\(model.filter)'"
        let shown = model.rows.isEmpty ? 0 : model.offset + 1
        let place =
            "\(shown)-\(min(model.rows.count, model.offset + model.visibleRows)) of \(model.rows.count)\(filter)"
            + " by \(model.order.rawValue)\(model.isReversed ? ", reversed" : "")"
        return palette.paint(
            glyphs.text("\(place)   q quit  s sort  / filter  r refresh  Enter details  ? help", columns: columns),
            .faint)
    }
}
