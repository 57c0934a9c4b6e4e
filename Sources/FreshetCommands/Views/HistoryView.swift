import FreshetControl
import FreshetRender

/// A generation as a row of `history`.
enum HistoryView {
    static let columns: [Table.Column] = [
        .init("GENERATION", .right), .init("CONTENT"), .init("COMMITTED"), .init("SIZE", .right), .init("DIGEST"),
        .init("TOOK", .right), .init("CAUSES", shrinksTo: 8),
    ]

    /// As many digits as tell any two apart that somebody will ever see side by side.
    private static let digits = 12

    static func row(_ generation: PastGeneration, _ times: Times) -> [Table.Cell] {
        let content: Table.Cell =
            if generation.current { Table.Cell("current", .good) } else if generation.kept { "kept" } else {
                Table.Cell("removed", .faint)
            }
        return [
            Table.Cell("\(generation.number)"),
            content,
            Table.Cell(times.absolute(generation.committedAt)),
            Table.Cell(SizeText.bytes(generation.size) + (generation.truncated == true ? " (truncated)" : "")),
            Table.Cell(String(generation.digest.prefix(digits))),
            Table.Cell(generation.durationUSec.map(TimeText.duration) ?? "-"),
            Table.Cell(generation.causes ?? "-"),
        ]
    }
}
