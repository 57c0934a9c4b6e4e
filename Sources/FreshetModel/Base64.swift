/// Encodes bytes as text and decodes them (RFC 4648, section 4).
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text of bytes, with padding.
    package static func text(of bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            let word =
                UInt32(bytes[start]) << 16 | (count > 1 ? UInt32(bytes[start + 1]) << 8 : 0)
                | (count > 2 ? UInt32(bytes[start + 2]) : 0)
            for digit in 0..<4 {
                let value = alphabet[Int(word >> UInt32(18 - 6 * digit) & 63)]
                text.append(digit <= count ? value : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text; nil if ``text(of:)`` cannot return this text.
    package static func bytes(of text: some StringProtocol) -> [UInt8]? { bytes(of: Array(text.utf8)) }

    /// The bytes of a text in ASCII; nil if ``text(of:)`` cannot return this text.
    package static func bytes(of digits: [UInt8]) -> [UInt8]? {
        guard digits.count.isMultiple(of: 4) else { return nil }
        let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding < 3 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        var word: UInt32 = 0
        for (index, digit) in digits.enumerated() {
            let isPadding = index >= digits.count - padding
            guard let value = isPadding ? 0 : value(of: digit) else { return nil }
            word = word << 6 | value
            if index % 4 == 3 {
                bytes += [UInt8(truncatingIfNeeded: word >> 16), UInt8(truncatingIfNeeded: word >> 8)]
                bytes.append(UInt8(truncatingIfNeeded: word))
                word = 0
            }
        }
        // Bits after the last byte must be zero: otherwise several texts would stand for the same bytes.
        guard bytes.suffix(padding).allSatisfy({ $0 == 0 }) else { return nil }
        bytes.removeLast(padding)
        return bytes
    }

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
