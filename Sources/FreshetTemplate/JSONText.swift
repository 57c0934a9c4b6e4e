import Synchronization

/// A parsed JSON text (RFC 8259), the input of a template.
///
/// It keeps the text and an index of its values, 8 bytes for each. Numbers, lists and objects are written as they were
/// read: a `Double` would change `12345678901234567890` and `1.10`. A tree of Swift values would take thirty times the
/// memory of a list of small objects.
final class JSONText: Sendable {
    /// How deep lists and objects may be nested: a deeper text could exhaust the stack. jq 1.6 has the same limit.
    static let depthLimit = 256
    /// The longest text, in bytes: offsets have 28 bits.
    static let sizeLimit = 1 << 28

    struct SyntaxError: Error, Hashable {
        var message: String
        /// The offset in bytes.
        var offset: Int
    }

    enum Kind: UInt32 {
        case null, `true`, `false`, number, string, list, object
        /// The end of a list or an object.
        case end
    }

    /// Where a value begins, and the entry after the value and everything in it.
    fileprivate struct Entry {
        private let start: UInt32
        fileprivate(set) var next: UInt32

        init(_ kind: Kind, at start: Int) {
            self.start = kind.rawValue << 28 | UInt32(truncatingIfNeeded: start)
            next = 0
        }

        var kind: Kind { Kind(rawValue: start >> 28) ?? .null }
        var offset: Int { Int(start & 0x0FFF_FFFF) }
    }

    private struct Place: Hashable {
        var object: Int
        var name: String
    }

    /// An object with more members than this is searched once for each name.
    private static let fewMembers = 16
    /// The most places that are remembered.
    private static let rememberedPlaces = 1_024

    private let bytes: [UInt8]
    private let entries: [Entry]
    private let places = Mutex<[Place: Int?]>([:])

    init(_ bytes: [UInt8]) throws(SyntaxError) {
        guard bytes.count < Self.sizeLimit else {
            throw SyntaxError(message: "it is longer than \(Self.sizeLimit) bytes", offset: Self.sizeLimit)
        }
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw SyntaxError(message: "it is not UTF-8", offset: error.byteOffsets.lowerBound)
        }
        var parser = JSONParser(bytes)
        entries = try parser.parse()
        self.bytes = bytes
    }

    /// The whole value is at index 0.
    func kind(_ index: Int) -> Kind { entries[index].kind }

    /// The first item of a list, or the first name of an object; the index of the end if there is none.
    func first(_ index: Int) -> Int { index + 1 }

    /// The value after this one, in a list.
    func next(_ index: Int) -> Int { Int(entries[index].next) }

    /// The member of an object; nil if there is none. Of two members with one name the last counts, as in jq.
    func member(_ name: String, of object: Int) -> Int? {
        guard kind(object) == .object else { return nil }
        let place = Place(object: object, name: name)
        if let known = places.withLock({ $0[place] }) { return known }
        var (found, count, index) = (Int?.none, 0, first(object))
        while kind(index) != .end {
            if isName(index, name) { found = index + 1 }
            count += 1
            index = next(index + 1)
        }
        if count > Self.fewMembers {
            places.withLock { places in
                if places.count >= Self.rememberedPlaces { places = [:] }
                places[place] = .some(found)
            }
        }
        return found
    }

    /// Names of a template are ASCII.
    private func isName(_ index: Int, _ name: String) -> Bool {
        let start = entries[index].offset + 1
        let end = start + name.utf8.count
        if end < bytes.count, bytes[end] == UInt8(ascii: "\""), bytes[start..<end].elementsEqual(name.utf8) {
            return true
        }
        // Only a name with escapes needs to be decoded.
        var position = start
        while bytes[position] != UInt8(ascii: "\""), bytes[position] != UInt8(ascii: "\\") { position += 1 }
        return bytes[position] == UInt8(ascii: "\\") && string(index).utf8.elementsEqual(name.utf8)
    }

    /// A string's content, and the text of anything else.
    func text(_ index: Int) -> String {
        switch kind(index) {
        case .null: return "null"
        case .true: return "true"
        case .false: return "false"
        case .string: return string(index)
        case .number:
            let start = entries[index].offset
            let end = bytes[start...].firstIndex { !JSONParser.isOfNumber($0) } ?? bytes.count
            return String(decoding: bytes[start..<end], as: UTF8.self)
        case .list, .object:
            let end = entries[next(index) - 1].offset
            return String(decoding: bytes[entries[index].offset...end], as: UTF8.self)
        case .end: return ""
        }
    }

    private func string(_ index: Int) -> String {
        let start = entries[index].offset + 1
        var position = start
        while bytes[position] != UInt8(ascii: "\"") {
            if bytes[position] == UInt8(ascii: "\\") { return JSONParser.decoded(bytes, from: start) }
            position += 1
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}

/// Checks a JSON text and makes the index of its values.
private struct JSONParser {
    private let bytes: [UInt8]
    private var position = 0
    private var entries: [JSONText.Entry] = []

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func parse() throws(JSONText.SyntaxError) -> [JSONText.Entry] {
        // A byte order mark may be ignored (RFC 8259, section 8.1); jq ignores it too.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        skipSpace()
        guard position < bytes.count else { throw error("it is empty") }
        try value(depth: 0)
        skipSpace()
        guard position == bytes.count else {
            throw error("text follows the first JSON text; a template needs exactly one")
        }
        return entries
    }

    // MARK: Values

    private mutating func value(depth: Int) throws(JSONText.SyntaxError) {
        guard let current else { throw error("a JSON value is expected") }
        let entry = entries.count
        switch current {
        case UInt8(ascii: "{"):
            try enter(.object, depth + 1)
            try members(depth: depth + 1)
        case UInt8(ascii: "["):
            try enter(.list, depth + 1)
            try items(depth: depth + 1)
        case UInt8(ascii: "\""):
            entries.append(JSONText.Entry(.string, at: position))
            try string()
        case UInt8(ascii: "t"): try word("true", .true)
        case UInt8(ascii: "f"): try word("false", .false)
        case UInt8(ascii: "n"): try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            entries.append(JSONText.Entry(.number, at: position))
            try number()
        default: throw error("a JSON value is expected")
        }
        entries[entry].next = UInt32(truncatingIfNeeded: entries.count)
    }

    private mutating func members(depth: Int) throws(JSONText.SyntaxError) {
        skipSpace()
        if leave("}") { return }
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else { throw error("a name in quotation marks is expected") }
            entries.append(JSONText.Entry(.string, at: position))
            try string()
            skipSpace()
            guard take(":") else { throw error("':' is expected") }
            skipSpace()
            try value(depth: depth)
            skipSpace()
            if leave("}") { return }
            guard take(",") else { throw error("',' or '}' is expected") }
        }
    }

    private mutating func items(depth: Int) throws(JSONText.SyntaxError) {
        skipSpace()
        if leave("]") { return }
        while true {
            skipSpace()
            try value(depth: depth)
            skipSpace()
            if leave("]") { return }
            guard take(",") else { throw error("',' or ']' is expected") }
        }
    }

    private mutating func enter(_ kind: JSONText.Kind, _ depth: Int) throws(JSONText.SyntaxError) {
        guard depth <= JSONText.depthLimit else {
            throw error("it is nested deeper than \(JSONText.depthLimit) levels")
        }
        entries.append(JSONText.Entry(kind, at: position))
        position += 1
    }

    private mutating func leave(_ bracket: Unicode.Scalar) -> Bool {
        guard take(bracket) else { return false }
        entries.append(JSONText.Entry(.end, at: position - 1))
        return true
    }

    private mutating func word(_ word: StaticString, _ kind: JSONText.Kind) throws(JSONText.SyntaxError) {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count, word.withUTF8Buffer({ bytes[position..<end].elementsEqual($0) }) else {
            throw error("a JSON value is expected")
        }
        entries.append(JSONText.Entry(kind, at: position))
        position = end
    }

    private mutating func number() throws(JSONText.SyntaxError) {
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
    }

    private mutating func digits() throws(JSONText.SyntaxError) {
        let start = position
        while let current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(current) { position += 1 }
        guard position > start else { throw error("a digit is expected") }
    }

    static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    // MARK: Strings

    private mutating func string() throws(JSONText.SyntaxError) {
        position += 1
        while let current {
            switch current {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"):
                position += 1
                try escape()
            case 0..<0x20: throw error("a control character is in a string")
            default: position += 1
            }
        }
        throw error("a string is not closed")
    }

    private mutating func escape() throws(JSONText.SyntaxError) {
        switch current {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        case UInt8(ascii: "u"):
            guard position + 5 <= bytes.count,
                bytes[(position + 1)..<(position + 5)].allSatisfy({ Self.digit($0) != nil })
            else { throw error("four hexadecimal digits are expected") }
            position += 5
        default: throw error("an unknown escape is in a string")
        }
    }

    private static func digit(_ byte: UInt8) -> UInt32? {
        byte < 0x80 ? Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt32($0) } : nil
    }

    /// The content of a valid string from its first byte.
    static func decoded(_ bytes: [UInt8], from start: Int) -> String {
        var (content, position) = ([UInt8](), start)
        while bytes[position] != UInt8(ascii: "\"") {
            let byte = bytes[position]
            position += 1
            guard byte == UInt8(ascii: "\\") else {
                content.append(byte)
                continue
            }
            let escape = bytes[position]
            position += 1
            switch escape {
            case UInt8(ascii: "b"): content.append(0x08)
            case UInt8(ascii: "f"): content.append(0x0C)
            case UInt8(ascii: "n"): content.append(0x0A)
            case UInt8(ascii: "r"): content.append(0x0D)
            case UInt8(ascii: "t"): content.append(0x09)
            case UInt8(ascii: "u"): content += Array(String(Character(scalar(bytes, &position))).utf8)
            default: content.append(escape)
            }
        }
        return String(decoding: content, as: UTF8.self)
    }

    /// The scalar of the digits after `\u`. A half of a surrogate pair becomes U+FFFD, as in jq.
    private static func scalar(_ bytes: [UInt8], _ position: inout Int) -> Unicode.Scalar {
        let first = unit(bytes, position)
        position += 4
        if let scalar = Unicode.Scalar(first) { return scalar }
        let replacement: Unicode.Scalar = "\u{FFFD}"
        guard first < 0xDC00, bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u") else {
            return replacement
        }
        let second = unit(bytes, position + 2)
        guard (0xDC00...0xDFFF).contains(second) else { return replacement }
        position += 6
        return Unicode.Scalar(0x1_0000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? replacement
    }

    private static func unit(_ bytes: [UInt8], _ position: Int) -> UInt32 {
        bytes[position..<(position + 4)].reduce(0) { $0 << 4 | (digit($1) ?? 0) }
    }

    // MARK: Bytes

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard current == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let current, current == 0x20 || current == 0x0A || current == 0x0D || current == 0x09 { position += 1 }
    }

    private func error(_ message: String) -> JSONText.SyntaxError {
        JSONText.SyntaxError(message: message, offset: position)
    }
}
