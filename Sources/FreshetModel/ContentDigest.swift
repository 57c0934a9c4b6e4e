/// The SHA-256 of a generation's content.
package struct ContentDigest: Hashable, Sendable, CustomStringConvertible {
    /// Length in bytes.
    package static let byteCount = 32

    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// 32 bytes of 0, for content without a computed digest.
    package static let zero = ContentDigest(words: (0, 0, 0, 0))

    private init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

    /// From 32 bytes; nil for any other number of them.
    ///
    /// The parameter has one type: other modules call it for each row of the index, and a generic function is not
    /// specialized for them.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        func word(_ index: Int) -> UInt64 { (8 * index..<8 * index + 8).reduce(0) { $0 << 8 | UInt64(bytes[$1]) } }
        words = (word(0), word(1), word(2), word(3))
    }

    /// From 64 hexadecimal digits in lower case; nil for anything else.
    package init?(hexadecimal: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        var high: UInt8?
        for character in String(hexadecimal).utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard high == nil else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 bytes.
    package var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(Self.byteCount)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return result
    }

    /// 64 hexadecimal digits in lower case.
    package var description: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(2 * Self.byteCount)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        // The words are uniformly distributed already: one word is enough for a hash.
        hasher.combine(words.0)
    }
}
