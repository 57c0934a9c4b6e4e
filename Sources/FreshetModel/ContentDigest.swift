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
        guard let digest = bytes.withUnsafeBytes({ ContentDigest(bytes: $0) }) else { return nil }
        self = digest
    }

    /// From 32 bytes; nil for any other number of them.
    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    /// From 64 hexadecimal digits in lower case; nil for anything else.
    package init?(hexadecimal: some StringProtocol) {
        var text = String(hexadecimal)
        guard let digest = text.withUTF8({ ContentDigest(digits: $0[...]) }) else { return nil }
        self = digest
    }

    /// From 64 hexadecimal digits in lower case; nil for anything else.
    package init?(digits: Slice<UnsafeBufferPointer<UInt8>>) {
        guard digits.count == 2 * Self.byteCount else { return nil }
        func word(_ index: Int) -> UInt64? {
            var word: UInt64 = 0
            let start = digits.startIndex + 16 * index
            for position in start..<start + 16 {
                let byte = digits[position]
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"): word = word << 4 | UInt64(byte - UInt8(ascii: "0"))
                case UInt8(ascii: "a")...UInt8(ascii: "f"): word = word << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
                default: return nil
                }
            }
            return word
        }
        guard let first = word(0), let second = word(1), let third = word(2), let last = word(3) else { return nil }
        words = (first, second, third, last)
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
        String(unsafeUninitializedCapacity: 2 * Self.byteCount) { text in
            var index = 0
            for word in [words.0, words.1, words.2, words.3] {
                for shift in stride(from: 60, through: 0, by: -4) {
                    let digit = UInt8(truncatingIfNeeded: word >> UInt64(shift) & 15)
                    text[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                    index += 1
                }
            }
            return index
        }
    }

    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        // The words are uniformly distributed already: one word is enough for a hash.
        hasher.combine(words.0)
    }
}
