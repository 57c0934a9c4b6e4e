/// A progress bar.
package enum ProgressBar {
    /// Such as `[======>      ]`, in ASCII.
    ///
    /// - Parameters:
    ///   - fraction: from 0 to 1; other values are clamped.
    ///   - columns: the width, including the brackets; at least 3.
    package static func text(_ fraction: Double, columns: Int) -> String {
        let inner = max(1, columns - 2)
        let full = fraction >= 1 ? inner : Int(max(0, fraction) * Double(inner))
        let head = full < inner ? ">" : ""
        return "[" + String(repeating: "=", count: full) + head
            + String(repeating: " ", count: inner - full - head.count) + "]"
    }
}
