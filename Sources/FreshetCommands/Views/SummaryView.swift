import FreshetControl
import FreshetRender

/// A pipeline as a row of a table.
struct SummaryView {
    let summary: PipelineSummary
    let times: Times

    /// - Parameter hasErrors: whether the last column has errors; then it stays on a narrow terminal, with enough width
    ///   to understand them.
    private static func columns(hasErrors: Bool) -> [Table.Column] {
        [
            .init("NAME", shrinksTo: 12), .init("STATE", shrinksTo: 15), .init("GEN", .right, shrinksTo: 8, goes: 2),
            .init("SIZE", .right, goes: 4), .init("CHECKED"), .init("NEXT", goes: 1),
            hasErrors ? .init("CAUSES", shrinksTo: 24) : .init("CAUSES", shrinksTo: 8, goes: 3),
        ]
    }

    static func table(_ summaries: [PipelineSummary], _ times: Times) -> Table {
        Table(
            columns: columns(hasErrors: summaries.contains { $0.failure != nil }),
            rows: summaries.map { SummaryView(summary: $0, times: times).row })
    }

    /// Such as `waiting:network; stale`.
    var state: String {
        var state = summary.state.rawValue
        if let reason = summary.waitingFor, summary.state == .waiting { state += ":\(reason.rawValue)" }
        if let freshness = summary.freshness, freshness != .fresh { state += "; \(freshness.rawValue)" }
        if summary.hookFails == true { state += "; hook fails" }
        return state
    }

    /// The cells of `list`.
    var row: [Table.Cell] {
        [
            Table.Cell(summary.name),
            Table.Cell(state, Palette.Style(summary.state, summary.freshness)),
            Table.Cell(copy),
            Table.Cell(summary.size.map(SizeText.bytes) ?? "-"),
            Table.Cell(summary.lastCheck.map(times.relative) ?? "-"),
            Table.Cell(summary.nextRun.map(times.relative) ?? "-"),
            summary.failure.map { Table.Cell($0, .bad) }
                ?? Table.Cell(summary.causes.joined(separator: ", ")),
        ]
    }

    /// Such as `7 (pinned)`.
    var copy: String {
        guard let number = summary.generation else { return summary.withdrawn.map { "\($0) (withdrawn)" } ?? "-" }
        var text = "\(number)"
        if summary.pinned == true {
            text += " (pinned)"
        } else if summary.behind == true {
            text += " (rolled back)"
        }
        return summary.truncated == true ? text + " (truncated)" : text
    }
}
