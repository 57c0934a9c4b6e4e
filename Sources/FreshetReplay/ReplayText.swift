import FreshetControl

/// The result of a replay for people: a table of the pipelines, and a timeline of each.
package struct ReplayText: Sendable {
    /// An hour has at least two columns in a recording of a day.
    private static let columns = 60
    /// Longer lists are in the JSON only.
    private static let mostListedRuns = 20

    private let result: ReplayResult
    /// Seconds east of UTC at an instant in microseconds since 1970.
    private let offset: @Sendable (Int64) -> Int64

    package init(_ result: ReplayResult, offset: @escaping @Sendable (Int64) -> Int64) {
        self.result = result
        self.offset = offset
    }

    package var lines: [String] {
        var lines = table
        for pipeline in result.pipelines where !pipeline.recorded.runs.isEmpty || !pipeline.replayed.runs.isEmpty {
            lines += [""] + self.lines(of: pipeline)
        }
        if !result.notes.isEmpty { lines += [""] + result.notes }
        return lines
    }

    private var table: [String] {
        let header = ["PIPELINE", "RECORDED", "REPLAYED", "REQUESTS", "CHANGED", "FAILED"]
        func row(_ name: String, _ recorded: ReplayResult.Totals, _ replayed: ReplayResult.Totals) -> [String] {
            [
                name, Self.count(recorded.runs, "run"), Self.count(replayed.runs, "run"),
                Self.difference(recorded.requests, replayed.requests),
                Self.difference(recorded.changed, replayed.changed), Self.difference(recorded.failed, replayed.failed),
            ]
        }
        var rows = [header] + result.pipelines.map { row($0.name, $0.recorded.totals, $0.replayed.totals) }
        if result.pipelines.count > 1 { rows.append(row("total", result.recorded, result.replayed)) }
        let widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let table = rows.map { row in
            let cells = row.enumerated().map { index, cell in
                index == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[index] - cell.count)
            }
            return cells.joined(separator: "  ")
        }
        return ["\(date(result.since)) to \(date(result.until))", ""] + table
    }

    /// Such as `12 -> 8 (-4)`.
    private static func difference(_ before: Int64, _ after: Int64) -> String {
        before == after ? "\(before)" : "\(before) -> \(after) (\(after > before ? "+" : "")\(after - before))"
    }

    private static func count(_ number: Int64, _ word: String) -> String {
        "\(number) \(word)\(number == 1 ? "" : "s")"
    }

    private func lines(of pipeline: ReplayResult.Pipeline) -> [String] {
        var lines = [pipeline.name]
        for (name, side) in [("recorded", pipeline.recorded), ("replayed", pipeline.replayed)] {
            lines.append("  \(name)  |\(lane(side.runs))|")
        }
        for (name, side) in [("recorded", pipeline.recorded), ("replayed", pipeline.replayed)] {
            guard side.runs.count <= Self.mostListedRuns else { continue }
            for run in side.runs {
                lines.append(
                    "  \(name)  \(time(run.started))  \(run.outcome) after \(run.durationUSec / 1000) ms: \(run.causes)"
                )
            }
        }
        return lines
    }

    /// One character for each part of the window: the number of runs that began in it.
    private func lane(_ runs: [ReplayResult.Run]) -> String {
        var counts = [Int](repeating: 0, count: Self.columns)
        let length = max(1, result.until - result.since)
        for run in runs {
            let share = Double(run.started - result.since) / Double(length)
            counts[min(Self.columns - 1, max(0, Int(share * Double(Self.columns))))] += 1
        }
        return String(counts.map { $0 == 0 ? "." : $0 > 9 ? "+" : Character(String($0)) })
    }

    // MARK: Times

    private func date(_ instant: Int64) -> String {
        let (days, _) = split(instant)
        // Days since 0000-03-01, so that a leap day is the last day of a year (H. Hinnant, chrono-compatible
        // low-level date algorithms).
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let number = month < 10 ? month + 3 : month - 9
        let year = yearOfEra + era * 400 + (number <= 2 ? 1 : 0)
        return "\(year)-\(Self.two(number))-\(Self.two(day)) \(time(instant))"
    }

    private func time(_ instant: Int64) -> String {
        let (_, seconds) = split(instant)
        return "\(Self.two(seconds / 3600)):\(Self.two(seconds / 60 % 60)):\(Self.two(seconds % 60))"
    }

    /// The local day since 1970, and the second of the day.
    private func split(_ instant: Int64) -> (days: Int64, seconds: Int64) {
        let local = max(0, instant / 1_000_000 + offset(instant))
        return (local / 86_400, local % 86_400)
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
