import FreshetControl

/// The numbers of items that were added, removed, changed and moved between two generations.
struct ItemCounts: Encodable, Hashable {
    var added: Int
    var removed: Int
    var changed: Int
    var moved: Int

    init(_ difference: ItemDifference) {
        added = difference.count(.added)
        removed = difference.count(.removed)
        changed = difference.count(.changed)
        moved = difference.count(.moved)
    }

    /// The counts with the marks of `diff`, such as `+2 -1`.
    var text: String {
        let counts = [("+", added), ("-", removed), ("!", changed), (">", moved)].filter { $0.1 > 0 }
        return counts.isEmpty ? "same" : counts.map { "\($0)\($1)" }.joined(separator: " ")
    }

    /// The largest content, in bytes, that is read for a table.
    static let mostBytes: Int64 = 16 << 20

    /// The counts of each generation compared with the generation before, by number. A generation has counts if both
    /// generations are kept, are lists of items with this key, and may be read by the caller.
    ///
    /// - Parameter generations: the generations, newest first.
    static func between(
        _ generations: [PastGeneration], of name: String, by key: KeyPath, _ client: ControlClient
    ) -> [Int64: ItemCounts] {
        var counts: [Int64: ItemCounts] = [:]
        var newer: (number: Int64, list: ItemList)?
        for (index, generation) in generations.enumerated() {
            let isNeeded = newer != nil || generations.dropFirst(index + 1).first?.kept == true
            let list = isNeeded ? list(of: generation, name, key, client) : nil
            if let newer, let list { counts[newer.number] = ItemCounts(ItemDifference(from: list, to: newer.list)) }
            newer = list.map { (generation.number, $0) }
        }
        return counts
    }

    private static func list(
        of generation: PastGeneration, _ name: String, _ key: KeyPath, _ client: ControlClient
    ) -> ItemList? {
        guard generation.kept, generation.size <= mostBytes else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(generation.size))
        do throws(ControlClient.Failure) {
            try client.read(generation.number, of: name) { piece in
                bytes += piece
                return bytes.count <= mostBytes
            }
        } catch {
            return nil
        }
        return try? ItemList(bytes, key: key)
    }
}
