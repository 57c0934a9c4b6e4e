/// Writes numbers, texts and tagged fields as bytes. A number has seven bits in each byte, lowest first, and all bytes
/// but the last one have the eighth bit set.
struct FieldWriter {
    /// The most bytes of a number.
    static let longestNumber = 10

    private(set) var bytes: [UInt8] = []

    init(capacity: Int = 192) { bytes.reserveCapacity(capacity) }

    mutating func write(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// A number near zero has few bytes: 0, -1, 1, -2, 2 are written as 0, 1, 2, 3, 4.
    mutating func write(_ number: Int64) { write(UInt64(bitPattern: (number << 1) ^ (number >> 63))) }

    mutating func write(_ text: String) {
        write(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func write<Value: CaseIterable & Equatable>(_ value: Value) where Value.AllCases == [Value] {
        // safe: the list has all values.
        bytes.append(UInt8(Value.allCases.firstIndex(of: value) ?? 0))
    }

    mutating func write(tag: UInt8) { bytes.append(tag) }

    mutating func write(_ tag: UInt8, _ number: Int64?) {
        guard let number else { return }
        bytes.append(tag)
        write(number)
    }

    mutating func write(_ tag: UInt8, _ text: String?) {
        guard let text else { return }
        bytes.append(tag)
        write(text)
    }

    mutating func write<Value: CaseIterable & Equatable>(
        _ tag: UInt8, _ value: Value?
    ) where Value.AllCases == [Value] {
        guard let value else { return }
        bytes.append(tag)
        write(value)
    }
}

/// Reads what a ``FieldWriter`` of the same process has written, in the same order.
struct FieldReader {
    private let bytes: [UInt8]
    private(set) var position: Int

    init(_ bytes: [UInt8], at position: Int = 0) { (self.bytes, self.position) = (bytes, position) }

    mutating func tag() -> UInt8 {
        defer { position += 1 }
        return bytes[position]
    }

    mutating func unsigned() -> UInt64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = tag()
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
    }

    mutating func number() -> Int64 {
        let number = unsigned()
        return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }

    mutating func text() -> String {
        let count = Int(unsigned())
        defer { position += count }
        return String(decoding: bytes[position..<position + count], as: UTF8.self)
    }

    mutating func value<Value: CaseIterable>() -> Value where Value.AllCases == [Value] {
        Value.allCases[Int(tag())]
    }

    /// Moves behind the length of a record, to its first byte.
    mutating func enter() { _ = unsigned() }

    /// Moves behind a record.
    mutating func skip() {
        let length = Int(unsigned())
        position += length
    }
}
