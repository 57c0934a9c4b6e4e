import FreshetModel
import FreshetVarlink

/// The text of a record: a JSON object in one line, which fits in a header. The signature covers these bytes, so a reader
/// verifies them before it reads them, and no second encoding of the same record has to be equal.
extension FleetRecord {
    /// The version of the text. A reader rejects a later one, because it may mean something that it must not ignore.
    static let version: UInt64 = 1
    /// The longest text of a name, a validator or a reason, in bytes.
    static let longestText = 1_024
    /// The longest signature file of the origin, in bytes.
    static let longestMinisign = 4_096
    /// The longest text of a record, in bytes: with escapes, all of the above fit.
    static let longestRecord = 16_384

    /// Why a text is not a record.
    package enum FormatError: Error, Hashable, Sendable, CustomStringConvertible {
        case notJSON
        case tooLong
        /// A later version of Freshet made it.
        case newerVersion(UInt64)
        /// The member is missing, or its value is not of the kind that it has to be.
        case member(String)

        package var description: String {
            switch self {
            case .notJSON: "it is not a JSON object"
            case .tooLong: "it has more than \(FleetRecord.longestRecord) bytes"
            case .newerVersion(let version):
                "its format is version \(version), and this Freshet reads version \(FleetRecord.version); update it"
            case .member(let name): "its member '\(name)' is missing or has a wrong value"
            }
        }
    }

    /// The text of the record.
    package var text: [UInt8] {
        var writer = MemberWriter()
        writer.add("version", Self.version)
        writer.add("fleet", fleet)
        writer.add("pipeline", pipeline)
        writer.add("fingerprint", fingerprint.description)
        writer.add("number", number)
        writer.add("digest", digest.description)
        writer.add("size", size)
        writer.add("entity-tag", validators.entityTag)
        writer.add("last-modified", validators.lastModified)
        writer.add("checked-at", checkedAt)
        writer.add("made-by", madeBy)
        writer.add("demand", answeredDemand)
        writer.add("members", UInt64(members))
        writer.add("spread-ms", UInt64(spreadMilliseconds))
        writer.add("roll-out-share", rollOut.map { UInt64($0.share) })
        writer.add("roll-out-since", rollOut?.since)
        writer.add("roll-out-halted", rollOut.map { $0.isHalted ? 1 : 0 })
        writer.add("minisign", minisign)
        return writer.finish()
    }

    /// Reads a text. Members with other names are ignored: they do not change the meaning of those here, or the version
    /// would be another one.
    package init(text: [UInt8]) throws(FormatError) {
        guard text.count <= Self.longestRecord else { throw .tooLong }
        guard let reader = MemberReader(text) else { throw .notJSON }
        let version = try reader.number("version")
        guard version == Self.version else { throw .newerVersion(version) }
        self.init(
            fleet: try reader.name("fleet"), pipeline: try reader.name("pipeline"),
            fingerprint: try reader.digest("fingerprint"), number: try reader.number("number"),
            digest: try reader.digest("digest"), size: try reader.number("size"),
            checkedAt: try reader.time("checked-at"), madeBy: try reader.name("made-by"))
        guard number > 0 else { throw .member("number") }
        guard size <= UInt64(Int64.max) else { throw .member("size") }
        validators = Validators(
            entityTag: try reader.text("entity-tag"), lastModified: try reader.text("last-modified"))
        if reader.has("demand") { answeredDemand = try reader.number("demand") }
        members = max(1, try reader.count("members"))
        spreadMilliseconds = try reader.count("spread-ms")
        if reader.has("roll-out-share") {
            rollOut = RollOut(
                share: try reader.count("roll-out-share"), since: try reader.time("roll-out-since"),
                isHalted: try reader.number("roll-out-halted") != 0)
        }
        minisign = try reader.text("minisign", atMost: Self.longestMinisign)
    }
}

/// Writes the members of one JSON object.
private struct MemberWriter {
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
private struct MemberReader {
    private let bytes: [UInt8]
    private let values: [String: Range<Int>]

    init?(_ bytes: [UInt8]) {
        guard let members = try? JSONScanner.members(of: bytes) else { return nil }
        self.bytes = bytes
        // The scanner rejects duplicate names.
        values = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// A text that may be missing.
    func text(_ name: String, atMost limit: Int = FleetRecord.longestText) throws(FleetRecord.FormatError) -> String? {
        guard let value = values[name] else { return nil }
        guard let text = JSONScanner.string(value, of: bytes), text.utf8.count <= limit else { throw .member(name) }
        return text
    }

    /// A text without control characters that is not empty.
    func name(_ name: String) throws(FleetRecord.FormatError) -> String {
        guard let text = try text(name), !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .member(name)
        }
        return text
    }

    func number(_ name: String) throws(FleetRecord.FormatError) -> UInt64 {
        guard let value = values[name], value.count <= 20,
            bytes[value].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = UInt64(String(decoding: bytes[value], as: UTF8.self))
        else { throw .member(name) }
        return number
    }

    func count(_ name: String) throws(FleetRecord.FormatError) -> UInt32 {
        guard let count = UInt32(exactly: try number(name)) else { throw .member(name) }
        return count
    }

    /// The range of the wall clock ends in 2262.
    func time(_ name: String) throws(FleetRecord.FormatError) -> WallTime {
        let number = try number(name)
        guard let microseconds = Int64(exactly: number), microseconds <= Int64.max / 1_000 else { throw .member(name) }
        return WallTime(microseconds: microseconds)
    }

    func digest(_ name: String) throws(FleetRecord.FormatError) -> ContentDigest {
        guard let text = try text(name), let digest = ContentDigest(hexadecimal: text) else { throw .member(name) }
        return digest
    }
}
