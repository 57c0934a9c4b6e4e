/// Bounds the cost of comparing text that comes from an origin.
///
/// Swift compares and hashes strings by canonical equivalence: it sorts each sequence of combining characters (UAX #15,
/// Unicode Normalization Forms, 1.3), at a cost that grows with the square of the sequence's length: 0.2 s for 64 KB.
/// Text of any language has few combining characters in a row, and the Stream-Safe Text Format allows 30 (UAX #15, 13).
package enum CombiningMarks {
    /// The most combining characters in a row (UAX #15, UAX15-D4).
    package static let limit = 30

    /// Whether text has at most ``limit`` combining characters in a row. It takes one pass; for pure ASCII almost
    /// nothing.
    ///
    /// - Parameter bytes: UTF-8, or any bytes; invalid UTF-8 counts as U+FFFD.
    package static func areFew(in bytes: some Collection<UInt8>) -> Bool {
        // Not generic, because a generic function is not specialized for other modules.
        bytes.withContiguousStorageIfAvailable(areFew) ?? Array(bytes).withUnsafeBufferPointer(areFew)
    }

    private static func areFew(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.contains(where: { $0 >= 0x80 }) else { return true }
        var marks = 0
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            marks = isMark ? marks + 1 : 0
            if marks > limit { return false }
        }
        return true
    }
}
