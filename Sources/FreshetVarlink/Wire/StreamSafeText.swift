/// Checks whether the cost of comparing a text is proportional to its length.
///
/// Swift compares and hashes strings by canonical equivalence: it sorts the combining characters after each base
/// character (UAX #15, Unicode Normalization Forms, 1.3), at a cost that grows with the square of their number. 64 KB
/// of combining characters take half a minute. Text of any language has few of them in a row, so text with more than
/// ``limit`` in a row is rejected before any comparison, as in the Stream-Safe Text Format (UAX #15, 13).
enum StreamSafeText {
    /// The most combining characters in a row (UAX #15, UAX15-D4).
    static let limit = 30
    /// The first combining character, U+0300.
    private static let firstMark: UInt32 = 0x300

    /// Whether the strings of a JSON text are safe, also where characters are escaped (`\u0301`). One pass over the
    /// bytes.
    ///
    /// - Parameter bytes: any bytes; the result is meaningless if they are not UTF-8.
    static func isSafe(json bytes: [UInt8]) -> Bool {
        var marks = 0
        var index = 0
        var high: UInt32 = 0
        while index < bytes.count {
            let byte = bytes[index]
            var scalar: UInt32 = 0
            if byte >= 0x80 {
                let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
                scalar = UInt32(byte) & (0xFF >> UInt32(length + 1))
                for next in bytes[(index + 1)...].prefix(length - 1) { scalar = scalar << 6 | UInt32(next & 0x3F) }
                index += length
            } else if byte == UInt8(ascii: "\\"), index + 5 < bytes.count, bytes[index + 1] == UInt8(ascii: "u") {
                for digit in bytes[(index + 2)..<(index + 6)] {
                    let value = Character(Unicode.Scalar(digit)).hexDigitValue ?? 0
                    scalar = scalar << 4 | UInt32(value)
                }
                index += 6
                // Two escapes (a surrogate pair) stand for a character beyond the first 65,536.
                if scalar & 0xFC00 == 0xD800 {
                    high = scalar
                    continue
                }
                if scalar & 0xFC00 == 0xDC00 { scalar = 0x10000 + (high & 0x3FF) << 10 + (scalar & 0x3FF) }
            } else {
                // An escape of one character, such as `\"`, or `\\`.
                index += byte == UInt8(ascii: "\\") ? 2 : 1
            }
            // Most calls are ASCII, and to look up each byte took a tenth of the time of a call.
            guard scalar >= firstMark else {
                marks = 0
                continue
            }
            let isMark = Unicode.Scalar(scalar).map { $0.properties.canonicalCombiningClass != .notReordered } ?? false
            marks = isMark ? marks + 1 : 0
            if marks > limit { return false }
        }
        return true
    }

    /// Whether a text is safe.
    static func isSafe(_ text: String) -> Bool {
        var marks = 0
        for scalar in text.unicodeScalars {
            guard scalar.value >= firstMark else {
                marks = 0
                continue
            }
            marks = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : marks + 1
            if marks > limit { return false }
        }
        return true
    }
}
