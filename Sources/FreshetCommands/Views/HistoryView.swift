import FreshetControl
import FreshetRender

/// A generation as a row of `history`.
enum HistoryView {
    /// - Parameter withMirrors: whether a generation comes from a mirror.
    static func columns(withItems: Bool, withMirrors: Bool) -> [Table.Column] {
        [.init("GENERATION", .right), .init("CONTENT"), .init("COMMITTED"), .init("SIZE", .right, goes: 2)]
            + (withItems ? [.init("ITEMS", goes: 1)] : [])
            + [
                .init("DIGEST", shrinksTo: 8, goes: 4), .init("TOOK", .right, goes: 3), .init("CAUSES", shrinksTo: 8),
            ] + (withMirrors ? [.init("MIRROR", shrinksTo: 12, goes: 5)] : [])
    }

    /// The reply of the interface, with the counts of items.
    struct Answer: Encodable {
        var generations: [Entry]
        var key: String?

        struct Entry: Encodable {
            var generation: PastGeneration
            var items: ItemCounts?

            private enum CodingKeys: String, CodingKey {
                case items
            }

            func encode(to encoder: any Encoder) throws {
                try generation.encode(to: encoder)
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encodeIfPresent(items, forKey: .items)
            }
        }

        init(_ history: ControlMessage.PastGenerations, _ counts: [Int64: ItemCounts]) {
            generations = history.generations.map { Entry(generation: $0, items: counts[$0.number]) }
            key = history.key
        }
    }

    /// Digits of a digest that are shown: enough to distinguish the generations of a pipeline.
    private static let digits = 12

    /// - Parameters:
    ///   - items: the counts of items; nil without the column.
    ///   - withMirrors: whether there is a column with the mirror.
    static func row(
        _ generation: PastGeneration, _ times: Times, items: String?, withMirrors: Bool
    ) -> [Table.Cell] {
        let content: Table.Cell =
            if generation.current {
                Table.Cell("current", .good)
            } else if generation.withdrawn == true, generation.kept {
                Table.Cell("withdrawn", .bad)
            } else if generation.kept { "kept" } else { Table.Cell("removed", .faint) }
        let first = [
            Table.Cell("\(generation.number)"),
            content,
            Table.Cell(times.absolute(generation.committedAt)),
            Table.Cell(SizeText.bytes(generation.size) + (generation.truncated == true ? " (truncated)" : "")),
        ]
        return first + (items.map { [Table.Cell($0)] } ?? []) + [
            Table.Cell(String(generation.digest.prefix(digits))),
            Table.Cell(generation.durationUSec.map(TimeText.duration) ?? "-"),
            Table.Cell(generation.causesText ?? "-"),
        ] + (withMirrors ? [Table.Cell(generation.mirror ?? "-")] : [])
    }
}
