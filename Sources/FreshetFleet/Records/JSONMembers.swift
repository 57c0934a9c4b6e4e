import FreshetModel
import FreshetVarlink

/// Writes the members of one JSON object.
struct MemberWriter {
    private var bytes: [UInt8] = Array("{".utf8)

    mutating func add(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        begin(name)
        bytes.append(jsonString: text)
    }

    mutating func add(_ name: StaticString, _ number: UInt64?) {
        guard let number else { return }
        begin(name)
        bytes += String(number).utf8
    }

    /// Microseconds since 1970.
    mutating func add(_ name: StaticString, _ time: WallTime?) {
        guard let time else { return }
        add(name, UInt64(max(0, time.microseconds)))
    }

    private mutating func begin(_ name: StaticString) {
        if bytes.count > 1 { bytes += ",".utf8 }
        bytes += "\"\(name)\":".utf8
    }

    consuming func finish() -> [UInt8] { bytes + "}".utf8 }
}

/// Reads the members of one JSON object. A missing member, or a value of another kind, is an error with its name.
struct MemberReader {
    /// The longest text of a name, a validator or a reason, in bytes.
    static let longestText = 1_024

    private let bytes: [UInt8]
    private let values: [String: Range<Int>]

    init?(_ bytes: [UInt8]) {
        guard let members = try? JSONScanner.members(of: bytes) else { return nil }
        self.bytes = bytes
        // The scanner rejects duplicate names.
        values = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    var names: [String] { Array(values.keys) }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// An object; nil: there is none of this name.
    func object(_ name: String) -> MemberReader? { values[name].flatMap { MemberReader(Array(bytes[$0])) } }

    func isTrue(_ name: String) -> Bool { values[name].map { bytes[$0].elementsEqual("true".utf8) } ?? false }

    /// A text that may be missing.
    func text(_ name: String, atMost limit: Int = Self.longestText) throws(RecordFormatError) -> String? {
        guard let value = values[name] else { return nil }
        guard let text = JSONScanner.string(value, of: bytes), text.utf8.count <= limit else { throw .member(name) }
        return text
    }

    /// A text without control characters that is not empty.
    func name(_ name: String) throws(RecordFormatError) -> String {
        guard let text = try text(name), !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .member(name)
        }
        return text
    }

    /// The name of a machine.
    func machine(_ name: String) throws(RecordFormatError) -> String {
        let machine = try self.name(name)
        guard machine.utf8.count <= 64, machine.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .member(name)
        }
        return machine
    }

    func number(_ name: String) throws(RecordFormatError) -> UInt64 {
        guard let value = values[name], value.count <= 20,
            bytes[value].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = UInt64(String(decoding: bytes[value], as: UTF8.self))
        else { throw .member(name) }
        return number
    }

    func count(_ name: String) throws(RecordFormatError) -> UInt32 {
        guard let count = UInt32(exactly: try number(name)) else { throw .member(name) }
        return count
    }

    /// The range of the wall clock ends in 2262.
    func time(_ name: String) throws(RecordFormatError) -> WallTime {
        let number = try number(name)
        guard let microseconds = Int64(exactly: number), microseconds <= Int64.max / 1_000 else { throw .member(name) }
        return WallTime(microseconds: microseconds)
    }

    func digest(_ name: String) throws(RecordFormatError) -> ContentDigest {
        guard let text = try text(name), let digest = ContentDigest(hexadecimal: text) else { throw .member(name) }
        return digest
    }
}
