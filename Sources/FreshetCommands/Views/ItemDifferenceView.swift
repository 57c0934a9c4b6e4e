import FreshetRender

/// A difference of lists, as text and as JSON.
struct ItemDifferenceView {
    let difference: ItemDifference
    let old: ItemList
    let new: ItemList

    /// One line for each item; for a changed item also the old and the new value.
    func lines(_ palette: Palette) -> [String] {
        difference.changes.flatMap { change -> [String] in
            let key = DisplayText.harmless(change.key.description)
            let before = change.old.map { Self.text(old.value($0)) } ?? ""
            let now = change.new.map { Self.text(new.value($0)) } ?? ""
            let move = change.hasMoved ? "moved from \((change.old ?? 0) + 1) to \((change.new ?? 0) + 1)" : nil
            return switch change.kind {
            case .removed: [palette.paint("- \(key): \(before)", .bad)]
            case .added: [palette.paint("+ \(key): \(now)", .good)]
            case .moved: ["> \(key): \(move ?? "")"]
            case .changed:
                ["! \(key):\(move.map { " " + $0 } ?? "")"]
                    + [palette.paint("  - \(before)", .bad), palette.paint("  + \(now)", .good)]
            }
        }
    }

    /// Such as `2 added, 1 removed, 1 changed, 0 moved.`
    var total: String {
        [ItemDifference.Change.Kind.added, .removed, .changed, .moved]
            .map { "\(difference.count($0)) \($0.rawValue)" }.joined(separator: ", ") + "."
    }

    /// One line of JSON, with the values of the items.
    ///
    /// - Parameters:
    ///   - to: the number of the newer generation; nil for rejected content.
    ///   - candidate: the digest of rejected content.
    func json(from: Int64, to: Int64?, candidate: String? = nil) -> String {
        let changes = difference.changes.map { change in
            var members = [#""change":"\#(change.kind.rawValue)""#, #""key":\#(change.key)"#]
            if change.hasMoved { members.append(#""moved":true"#) }
            if let place = change.old {
                members += [#""oldIndex":\#(place)"#, #""old":\#(String(decoding: old.value(place), as: UTF8.self))"#]
            }
            if let place = change.new {
                members += [#""newIndex":\#(place)"#, #""new":\#(String(decoding: new.value(place), as: UTF8.self))"#]
            }
            return "{\(members.joined(separator: ","))}"
        }
        let other = to.map { #","to":\#($0)"# } ?? ""
        let own = candidate.map { #","candidate":"\#($0)""# } ?? ""
        return #"{"by":"item"\#(own),"changes":[\#(changes.joined(separator: ","))],"from":\#(from)\#(other)}"#
    }

    private static func text(_ json: [UInt8]) -> String { DisplayText.harmless(String(decoding: json, as: UTF8.self)) }
}
