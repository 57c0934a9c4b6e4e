/// Scans JSON text (RFC 8259) without building values: finds the members of an object and the ranges of their values,
/// and rejects text that is not JSON.
///
/// Parsing the envelope of a message costs one pass over its bytes. Its parameters stay as text until a handler decodes
/// them into its own type.
package struct JSONScanner {
    /// How deep objects and arrays may be nested; deeper text is rejected before it can exhaust the stack.
    static let depthLimit = 64

    private static let fewMembers = 8

    /// The text is not JSON, or is ambiguous, from this offset on.
    package struct SyntaxError: Error, Hashable {
        package var offset: Int
    }

    /// A member of an object: its name and the range of its value.
    package struct Member: Hashable, Sendable {
        package var name: String
        package var value: Range<Int>
    }

    let bytes: [UInt8]
    var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The members of an object, which must be the whole text. A duplicate name is an error, because its meaning
    /// depends on the parser.
    package static func members(of bytes: [UInt8]) throws(SyntaxError) -> [Member] {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw SyntaxError(offset: error.byteOffsets.lowerBound)
        }
        var scanner = JSONScanner(bytes)
        var members: [Member] = []
        // Most objects have few members, which are compared faster than they are hashed.
        var names: Set<String> = []
        scanner.skipSpace()
        try scanner.object(depth: 1) { name, value, scanner throws(SyntaxError) in
            let text = try scanner.text(of: name)
            guard StreamSafeText.isSafe(text) else { throw SyntaxError(offset: name.lowerBound) }
            if members.count == Self.fewMembers { names = Set(members.map(\.name)) }
            let isNew =
                members.count < Self.fewMembers
                ? !members.contains { $0.name == text } : names.insert(text).inserted
            guard isNew else { throw SyntaxError(offset: name.lowerBound) }
            members.append(Member(name: text, value: value))
        }
        scanner.skipSpace()
        guard scanner.position == bytes.count else { throw SyntaxError(offset: scanner.position) }
        return members
    }

    /// The value of a string; the range includes its quotes. Nil: the value is not a string.
    package static func string(_ range: Range<Int>, of bytes: [UInt8]) -> String? {
        guard bytes[range.lowerBound] == UInt8(ascii: "\"") else { return nil }
        return try? JSONScanner(bytes).text(of: range)
    }

    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private var failure: SyntaxError { SyntaxError(offset: position) }

    mutating func skipSpace() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    mutating func expect(_ character: Unicode.Scalar) throws(SyntaxError) {
        guard current == UInt8(ascii: character) else { throw failure }
        position += 1
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard current == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    mutating func object(
        depth: Int, _ member: (Range<Int>, Range<Int>, JSONScanner) throws(SyntaxError) -> Void
    ) throws(SyntaxError) {
        try expect("{")
        skipSpace()
        if take("}") { return }
        repeat {
            skipSpace()
            let name = try string()
            skipSpace()
            try expect(":")
            skipSpace()
            let start = position
            try value(depth: depth)
            try member(name, start..<position, self)
            skipSpace()
        } while take(",")
        try expect("}")
    }

    private mutating func array(depth: Int) throws(SyntaxError) {
        try expect("[")
        skipSpace()
        if take("]") { return }
        repeat {
            skipSpace()
            try value(depth: depth)
            skipSpace()
        } while take(",")
        try expect("]")
    }

    mutating func value(depth: Int) throws(SyntaxError) {
        switch current {
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < Self.depthLimit else { throw failure }
            if current == UInt8(ascii: "[") {
                try array(depth: depth + 1)
            } else {
                try object(depth: depth + 1) { _, _, _ in }
            }
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: try number()
        }
    }

    private mutating func word(_ word: StaticString) throws(SyntaxError) {
        let matches = word.withUTF8Buffer { bytes[position...].starts(with: $0) }
        guard matches else { throw failure }
        position += word.utf8CodeUnitCount
    }

    private mutating func number() throws(SyntaxError) {
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
    }

    private mutating func digits() throws(SyntaxError) {
        let start = position
        while let byte = current, byte >= 0x30, byte <= 0x39 { position += 1 }
        guard position > start else { throw failure }
    }

    /// Scans a string and returns its range with its quotes.
    private mutating func string() throws(SyntaxError) -> Range<Int> {
        let start = position
        try expect("\"")
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return start..<position
            case UInt8(ascii: "\\"): try escape()
            case 0..<0x20: throw SyntaxError(offset: position - 1)
            default: continue
            }
        }
        throw failure
    }

    private mutating func escape() throws(SyntaxError) {
        switch current {
        case UInt8(ascii: "u"):
            position += 1
            _ = try hexadecimal()
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default: throw failure
        }
    }

    private mutating func hexadecimal() throws(SyntaxError) -> UInt16 {
        var result: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw failure }
            result = result << 4 | UInt16(digit)
            position += 1
        }
        return result
    }

    /// The value of a string that was scanned before.
    func text(of range: Range<Int>) throws(SyntaxError) -> String {
        let inner = bytes[range].dropFirst().dropLast()
        guard inner.contains(UInt8(ascii: "\\")) else {
            guard let text = String(validating: inner, as: UTF8.self) else {
                throw SyntaxError(offset: range.lowerBound)
            }
            return text
        }
        return try unescaped(inner.indices)
    }

    private func unescaped(_ range: Range<Int>) throws(SyntaxError) -> String {
        var units: [UInt8] = []
        var scanner = self
        scanner.position = range.lowerBound
        while scanner.position < range.upperBound {
            let byte = bytes[scanner.position]
            scanner.position += 1
            guard byte == UInt8(ascii: "\\") else {
                units.append(byte)
                continue
            }
            let kind = bytes[scanner.position]
            scanner.position += 1
            switch kind {
            case UInt8(ascii: "b"): units.append(0x08)
            case UInt8(ascii: "f"): units.append(0x0C)
            case UInt8(ascii: "n"): units.append(0x0A)
            case UInt8(ascii: "r"): units.append(0x0D)
            case UInt8(ascii: "t"): units.append(0x09)
            case UInt8(ascii: "u"): units += String(try scanner.scalar()).utf8
            default: units.append(kind)
            }
        }
        guard let text = String(validating: units, as: UTF8.self) else { throw SyntaxError(offset: range.lowerBound) }
        return text
    }

    /// The character of one or two `\u` escapes; the position is after the first `\u`.
    private mutating func scalar() throws(SyntaxError) -> Character {
        let first = try hexadecimal()
        if let scalar = Unicode.Scalar(first) { return Character(scalar) }
        // A surrogate is valid only in a pair.
        try expect("\\")
        try expect("u")
        let units = [first, try hexadecimal()]
        guard let text = String(validating: units, as: UTF16.self), let character = text.first else { throw failure }
        return character
    }
}

extension [UInt8] {
    /// Appends text as a JSON string.
    package mutating func append(jsonString text: String) {
        append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): self += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                self += "\\u00\(digits.count == 1 ? "0" : "")\(digits)".utf8
            default: append(byte)
            }
        }
        append(UInt8(ascii: "\""))
    }
}
