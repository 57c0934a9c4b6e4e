import FreshetControl
import FreshetRender

/// A timeline on a terminal: a column is a span of time, a line is a signal or a pipeline.
struct TimelineText {
    let timeline: Timeline
    let times: Times
    let palette: Palette
    var legend = true

    private static let countColumns = 6

    /// The meaning of a character. If a column has several, the last one in this order is shown.
    private enum Symbol: Int, Comparable, CaseIterable {
        case idle, offline, asleep, unseen, waiting, held, inProgress, unchanged, cutShort, changed, failed
        static func < (one: Symbol, other: Symbol) -> Bool { one.rawValue < other.rawValue }
    }

    func lines(columns: Int) -> [String] {
        let glyphs = Glyphs(palette.charset)
        let names = timeline.sources.map(\.name) + timeline.pipelines.map(\.name)
        let widest = names.map { DisplayText.width(of: glyphs.text($0)) }.max() ?? 0
        // The labels are wide enough for a date.
        let label = max(10, min(widest, columns / 3))
        let start = label + 1
        let width = max(10, columns - start - Self.countColumns)
        var canvas = TextCanvas(columns: columns)
        var seen: Set<Symbol> = []
        var mostFirings = 0
        let common = background(timeline.offline, width)
        func own(_ offline: [Timeline.TimeRange]?) -> [Symbol] { offline.map { background($0, width) } ?? common }

        drawAxis(&canvas, glyphs, start: start, width: width)
        var row = 1
        func title(_ text: String, _ count: String) {
            canvas.put(text, row: row, column: 0, .heading)
            canvas.put(count, row: row, column: columns - count.count, .heading)
            row += 1
        }
        func head(_ name: String, _ count: Int) {
            canvas.put(glyphs.text(name, columns: label), row: row, column: 0)
            let number = "\(count)"
            canvas.put(number, row: row, column: columns - number.count)
        }
        title("SIGNALS", "FIRED")
        for source in timeline.sources {
            head(source.name, source.firings.count)
            let background = own(source.offline)
            var counts = [Int](repeating: 0, count: width)
            for firing in source.firings { counts[column(of: firing.at, width)] += 1 }
            mostFirings = max(mostFirings, counts.max() ?? 0)
            for (place, count) in counts.enumerated() {
                let column = start + place
                switch count {
                case 0:
                    seen.insert(background[place])
                    let (character, style) = shown(background[place], glyphs)
                    canvas.put(character, row: row, column: column, style)
                case 1: canvas.put(glyphs.fired, row: row, column: column, .busy)
                case 2...9: canvas.put(Character("\(count)"), row: row, column: column, .busy)
                default: canvas.put("+", row: row, column: column, .busy)
                }
            }
            row += 1
        }
        if timeline.sources.isEmpty {
            canvas.put("no signal fired", row: row, column: 0, .faint)
            row += 1
        }
        title("PIPELINES", "RUNS")
        for pipeline in timeline.pipelines {
            head(pipeline.name, pipeline.runs)
            var signs = own(pipeline.offline)
            for part in pipeline.parts {
                let sign = Self.sign(of: part)
                for place in column(
                    of: part.from, width)...max(column(of: part.from, width), column(of: part.to, width))
                {
                    signs[place] = max(signs[place], sign)
                }
            }
            for (place, sign) in signs.enumerated() {
                seen.insert(sign)
                let (character, style) = shown(sign, glyphs)
                canvas.put(character, row: row, column: start + place, style)
            }
            row += 1
        }
        if timeline.pipelines.isEmpty {
            canvas.put("no events", row: row, column: 0, .faint)
            row += 1
        }
        var lines = canvas.lines(palette)
        guard legend else { return lines }
        lines.append("")
        lines += key(seen, mostFirings, glyphs, columns: columns)
        lines += timeline.remarks.flatMap { WrappedText.lines(glyphs.text($0), columns: columns) }
        return lines
    }

    private func column(of instant: Int64, _ width: Int) -> Int {
        let place = Double(instant - timeline.since) / Double(timeline.until - timeline.since) * Double(width)
        return max(0, min(width - 1, Int(place)))
    }

    private func background(_ offline: [Timeline.TimeRange], _ width: Int) -> [Symbol] {
        var signs = [Symbol](repeating: .idle, count: width)
        for (stretches, sign) in [
            (offline, Symbol.offline), (timeline.asleep, .asleep), (timeline.unseen, .unseen),
        ] {
            for stretch in stretches {
                for place in column(
                    of: stretch.from, width)...max(
                        column(of: stretch.from, width), column(of: stretch.to - 1, width))
                { signs[place] = max(signs[place], sign) }
            }
        }
        return signs
    }

    private func drawAxis(_ canvas: inout TextCanvas, _ glyphs: Glyphs, start: Int, width: Int) {
        let axis = TimeAxis(from: timeline.since, to: timeline.until, most: max(1, width / 13)) {
            times.timeZone($0).offset
        }
        var free = start
        for tick in axis.ticks {
            let place = start + column(of: tick.at, width)
            guard place >= free, place + tick.label.count < start + width + Self.countColumns else { continue }
            canvas.put(glyphs.tick, row: 0, column: place, .faint)
            canvas.put(tick.label, row: 0, column: place + 1, .faint)
            free = place + tick.label.count + 2
        }
        // The day at the beginning; the next day has a tick.
        let date = times.absolute(timeline.since).split(separator: " ").dropFirst().first.map(String.init) ?? ""
        canvas.put(String(date.prefix(start - 1)), row: 0, column: 0, .faint)
    }

    private static func sign(of part: Timeline.Part) -> Symbol {
        switch part.kind {
        case .waiting: .waiting
        case .held: .held
        case .run(nil): .inProgress
        case .run(.changed?): .changed
        case .run(.unchanged?): .unchanged
        case .run(.failed?): .failed
        case .run(.superseded?), .run(.cancelled?), .run(.unknown?): .cutShort
        }
    }

    private func shown(_ sign: Symbol, _ glyphs: Glyphs) -> (Character, Palette.Style) {
        switch sign {
        case .idle: (glyphs.idle, .faint)
        case .offline: (glyphs.offline, .bad)
        case .asleep: (glyphs.asleep, .faint)
        case .unseen: (glyphs.unseen, .plain)
        case .waiting: (glyphs.waiting, .busy)
        case .held: (glyphs.held, .plain)
        case .inProgress: (glyphs.inProgress, .busy)
        case .unchanged: (glyphs.unchanged, .plain)
        case .cutShort: ("!", .busy)
        case .changed: (glyphs.changed, .good)
        case .failed: ("x", .bad)
        }
    }

    private func key(_ seen: Set<Symbol>, _ mostFirings: Int, _ glyphs: Glyphs, columns: Int) -> [String] {
        var parts: [(sign: String, style: Palette.Style, meaning: String)] = []
        if mostFirings > 0 { parts.append((String(glyphs.fired), .busy, "fired")) }
        if mostFirings > 1 { parts.append(("2-9", .busy, "times")) }
        if mostFirings > 9 { parts.append(("+", .busy, "10 or more")) }
        for sign in Symbol.allCases.reversed() where seen.contains(sign) {
            let (character, style) = shown(sign, glyphs)
            let meaning: String? =
                switch sign {
                case .idle: nil
                case .offline: "offline"
                case .asleep: "asleep"
                case .unseen: nil
                case .waiting: "waiting"
                case .held: "held"
                case .inProgress: "in progress"
                case .unchanged: "nothing new"
                case .cutShort: "cut short"
                case .changed: "new copy"
                case .failed: "failed"
                }
            if let meaning { parts.append((String(character), style, meaning)) }
        }
        if seen.contains(.unseen) { parts.append(("blank", .plain, "unknown")) }
        // As many entries in a line as fit.
        var lines: [String] = []
        var line = ""
        var used = 0
        for part in parts {
            let width = DisplayText.width(of: part.sign) + 1 + part.meaning.count
            if used > 0, used + 3 + width > columns {
                lines.append(line)
                (line, used) = ("", 0)
            }
            if used > 0 { line += "   " }
            line += palette.paint(part.sign, part.style) + " " + part.meaning
            used += (used > 0 ? 3 : 0) + width
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }
}
