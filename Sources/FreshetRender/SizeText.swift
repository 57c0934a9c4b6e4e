/// Sizes for people, in IEC units.
package enum SizeText {
    /// Such as `117 B`, `1.2 KiB`, `64 MiB`: one decimal below ten, none where it would be zero.
    package static func bytes(_ count: Int64) -> String {
        let names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        // Unsigned: ten times an EiB does not fit into Int64.
        let count = UInt64(max(0, count))
        var unit = 0
        var scale: UInt64 = 1
        // A value that would round to 1024 of a unit is 1 of the next.
        while unit + 1 < names.count, count >= 1_024, rounded(count, scale) >= 1_024 {
            scale *= 1_024
            unit += 1
        }
        guard unit > 0 else { return "\(count) B" }
        let tenths = (count / scale) * 10 + ((count % scale) * 10 + scale / 2) / scale
        return tenths < 100 && tenths % 10 != 0
            ? "\(tenths / 10).\(tenths % 10) \(names[unit])" : "\(rounded(count, scale)) \(names[unit])"
    }

    private static func rounded(_ count: UInt64, _ scale: UInt64) -> UInt64 {
        count / scale + (scale > 1 && count % scale >= scale / 2 ? 1 : 0)
    }
}
