/// How far something is, drawn.
package enum ProgressBar {
    /// Such as `[======>      ]`, in characters that every terminal has.
    ///
    /// - Parameters:
    ///   - fraction: from 0 to 1; what is outside is cut off.
    ///   - columns: of the whole, its brackets included; at least 3.
    package static func text(_ fraction: Double, columns: Int) -> String {
        let room = max(1, columns - 2)
        let full = fraction >= 1 ? room : Int(max(0, fraction) * Double(room))
        let head = full < room ? ">" : ""
        return "[" + String(repeating: "=", count: full) + head
            + String(repeating: " ", count: room - full - head.count) + "]"
    }
}
