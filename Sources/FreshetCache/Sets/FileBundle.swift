/// Several files as one content: a JSON object with a member for each file; the name of the member is the name of the
/// file. A string is the text of the file; for any other value, the file has its JSON text with a newline.
///
/// The content comes from the jq helper and can contain anything that an origin sent. So this type only finds the
/// bounds of the object's own members, in one pass that neither recurses nor copies; it does not validate their values.
struct FileBundle: Sendable {
    struct Member: Hashable, Sendable {
        var name: String
        fileprivate var value: Range<Int>
        fileprivate var isText: Bool
    }

    let members: [Member]
    private let bytes: [UInt8]

    /// - Throws: ``CacheError/noBundle(_:)``.
    init(_ bytes: [UInt8]) throws(CacheError) {
        var scanner = Scanner(bytes: bytes)
        members = try scanner.members()
        self.bytes = bytes
    }

    /// The content of the file of a member.
    func content(of member: Member) -> [UInt8] {
        let value = bytes[member.value]
        return member.isText ? Self.text(value) : value + [UInt8(ascii: "\n")]
    }

    /// Decodes a JSON string (RFC 8259, 7), without its quotation marks.
    private static func text(_ string: ArraySlice<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(string.count)
        var rest = string
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                text.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "u"): text += String(scalar(&rest)).utf8
            default: text.append(escape)
            }
        }
        return text
    }

    /// Decodes the digits after `\u`, and the second half of a surrogate pair. A half without the other half becomes
    /// U+FFFD.
    private static func scalar(_ rest: inout ArraySlice<UInt8>) -> Character {
        let replacement: Character = "\u{FFFD}"
        guard let unit = unit(&rest) else { return replacement }
        if let scalar = Unicode.Scalar(unit) { return Character(scalar) }
        var ahead = rest
        guard UTF16.isLeadSurrogate(unit), ahead.popFirst() == UInt8(ascii: "\\"),
            ahead.popFirst() == UInt8(ascii: "u"), let trail = Self.unit(&ahead), UTF16.isTrailSurrogate(trail),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(trail & 0x3FF)))
        else { return replacement }
        rest = ahead
        return Character(scalar)
    }

    private static func unit(_ rest: inout ArraySlice<UInt8>) -> UInt16? {
        guard rest.count >= 4 else { return nil }
        let digits = String(decoding: rest.prefix(4), as: UTF8.self)
        rest = rest.dropFirst(4)
        return UInt16(digits, radix: 16)
    }

    /// Finds the members of the outermost object.
    private struct Scanner {
        let bytes: [UInt8]
        private var place = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        mutating func members() throws(CacheError) -> [Member] {
            try expect(UInt8(ascii: "{"), "it is not a JSON object")
            var members: [Member] = []
            var names: Set<String> = []
            repeat {
                try expect(UInt8(ascii: "\""), "it has no files")
                let name = String(decoding: FileBundle.text(bytes[try string()]), as: UTF8.self)
                if let error = CacheName.error(in: name) {
                    throw .noBundle("\(String(reflecting: name)) cannot be the name of a file: \(error)")
                }
                guard names.insert(name).inserted else { throw .noBundle("it has two files '\(name)'") }
                guard members.count < CacheLimits.filesPerSet else {
                    throw .noBundle("it has more than \(CacheLimits.filesPerSet) files")
                }
                try expect(UInt8(ascii: ":"), "a file has no content")
                members.append(try member(name))
            } while take(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"), "it has no end")
            skipSpace()
            guard place == bytes.count else { throw .noBundle("there is more text after the object") }
            return members
        }

        private mutating func member(_ name: String) throws(CacheError) -> Member {
            if take(UInt8(ascii: "\"")) { return Member(name: name, value: try string(), isText: true) }
            let start = place
            var depth = 0
            while place < bytes.count {
                switch bytes[place] {
                case UInt8(ascii: "\""):
                    place += 1
                    _ = try string()
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    if depth == 0 { return try value(name, start) }
                    depth -= 1
                case UInt8(ascii: ","): if depth == 0 { return try value(name, start) }
                default: break
                }
                place += 1
            }
            throw .noBundle("it has no end")
        }

        private func value(_ name: String, _ start: Int) throws(CacheError) -> Member {
            guard start < place else { throw .noBundle("a file has no content") }
            return Member(name: name, value: start..<place, isText: false)
        }

        /// Returns the range of a string whose first quotation mark was taken, without its quotation marks; continues
        /// after the last one.
        private mutating func string() throws(CacheError) -> Range<Int> {
            let start = place
            while place < bytes.count {
                let byte = bytes[place]
                place += byte == UInt8(ascii: "\\") ? 2 : 1
                if byte == UInt8(ascii: "\"") { return start..<(place - 1) }
            }
            throw .noBundle("it has no end")
        }

        private mutating func expect(_ byte: UInt8, _ error: String) throws(CacheError) {
            guard take(byte) else { throw .noBundle(error) }
        }

        /// Takes a byte and the white space around it, if it is the next byte.
        private mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard place < bytes.count, bytes[place] == byte else { return false }
            place += 1
            if byte != UInt8(ascii: "\"") { skipSpace() }
            return true
        }

        private mutating func skipSpace() {
            while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
        }
    }
}
