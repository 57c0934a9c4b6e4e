import FreshetPipelines

/// Parses the head of a response line by line: the status line, the fields and, after the body, the trailers.
///
/// It checks limits before it stores a line, parses each line once, and rejects responses that two implementations may
/// interpret differently (RFC 9112, 2.2, 5, 6.3 and 11.2): if a proxy finds the end of a body elsewhere, one request
/// gets the answer to another request.
///
/// Lines come from libcurl's header callback, one call for each line, including the line's end. Interim responses (1xx)
/// precede the final response and are counted, but not kept.
struct ResponseHead {
    /// Limits on a response. Each limit is far above usual responses: nginx and Apache send less than 1 KiB and 20
    /// lines.
    struct Limits: Hashable, Sendable {
        /// Lines of fields of one response.
        var lines = 256
        /// Bytes of one head, including the status line and the ends of lines.
        var bytes = 64 << 10
        /// Interim responses before the final one.
        var interim = 8
        /// Lines of trailers.
        var trailerLines = 64
        /// Bytes of trailers.
        var trailerBytes = 16 << 10
    }

    /// Why a response is rejected: a description of the invalid part that the origin sent.
    struct Violation: Error, Hashable, CustomStringConvertible {
        var description: String
        init(_ description: String) { self.description = description }
    }

    private enum Phase {
        case beforeStatus
        case inFields
        case afterFields
    }

    /// A field, as its places in ``text``.
    private struct Field {
        /// In lower case.
        var name: Range<Int>
        /// The bytes of the value in their original encoding, without the white space around them.
        var value: Range<Int>
    }

    private let limits: Limits
    private var phase = Phase.beforeStatus
    private var minorVersion: UInt8 = 1
    /// The lines of the head one after the other, without their ends: a block of memory for all fields.
    private var text: [UInt8] = []
    private var fields: [Field] = []
    private var lines = 0
    private var bytes = 0
    private var interim = 0
    private var trailerLines = 0
    private var trailerBytes = 0
    /// The status of the response whose head is read now or was read last.
    private(set) var status = 0

    init(_ limits: Limits = Limits()) { self.limits = limits }

    // MARK: Lines

    /// Takes one line, including its end.
    mutating func take(_ line: some Collection<UInt8>) throws(Violation) {
        switch phase {
        case .beforeStatus:
            try takeStatus(line)
        case .inFields:
            try takeField(line)
        case .afterFields where (100..<200).contains(status) && status != 101:
            try takeStatus(line)
        case .afterFields:
            trailerLines += 1
            trailerBytes += line.count
            guard trailerLines <= limits.trailerLines, trailerBytes <= limits.trailerBytes else {
                throw Violation(
                    "more than \(limits.trailerLines) lines or \(Text.grouped(UInt64(limits.trailerBytes))) bytes of trailers"
                )
            }
            // A trailer is checked, but not kept.
            text.removeLast(try add(line).count)
        }
    }

    private mutating func takeStatus(_ line: some Collection<UInt8>) throws(Violation) {
        text.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        lines = 0
        bytes = line.count
        guard bytes <= limits.bytes else { throw Self.tooLong(limits) }
        if text.capacity == 0 {
            text.reserveCapacity(Self.usualBytes)
            fields.reserveCapacity(Self.usualLines)
        }
        let line = text[try add(line)]
        // `HTTP/1.1 200`, perhaps with a reason after a space. Later versions have frames and no status line. Another
        // version in a status line would hide how the body ends.
        guard line.count >= 12, line[..<7].elementsEqual("HTTP/1.".utf8), Self.isDigit(line[7]), line[8] == 0x20,
            line[9..<12].allSatisfy(Self.isDigit), line[9] != 0x30, line.count == 12 || line[12] == 0x20
        else { throw Violation("a status line that is not of HTTP/1") }
        minorVersion = line[7] - 0x30
        status = line[9..<12].reduce(0) { 10 * $0 + Int($1 - 0x30) }
        if (100..<200).contains(status) {
            interim += 1
            guard interim <= limits.interim else { throw Violation("more than \(limits.interim) interim responses") }
        }
        phase = .inFields
    }

    private mutating func takeField(_ line: some Collection<UInt8>) throws(Violation) {
        lines += 1
        bytes += line.count
        guard lines <= limits.lines else { throw Violation("more than \(limits.lines) header lines") }
        guard bytes <= limits.bytes else { throw Self.tooLong(limits) }
        let place = try add(line)
        guard let first = text[place].first else {
            phase = .afterFields
            return try checkFraming()
        }
        guard !Self.isBlank(first) else {
            throw Violation("a header line that continues the previous line (RFC 9112, 5.2)")
        }
        guard let colon = text[place].firstIndex(of: UInt8(ascii: ":")), colon > place.lowerBound,
            text[place.lowerBound..<colon].allSatisfy(Self.isToken)
        else {
            throw Violation("a header line without a valid name")
        }
        for index in place.lowerBound..<colon where (0x41...0x5A).contains(text[index]) { text[index] |= 0x20 }
        let rest = text[(colon + 1)..<place.upperBound]
        let start = rest.firstIndex { !Self.isBlank($0) } ?? rest.endIndex
        let end = rest.lastIndex { !Self.isBlank($0) }.map { $0 + 1 } ?? start
        guard CombiningMarks.areFew(in: rest) else {
            throw Violation("a header line with more than \(CombiningMarks.limit) combining characters in a row")
        }
        fields.append(Field(name: place.lowerBound..<colon, value: start..<max(start, end)))
    }

    /// The memory for the head of a usual answer, in bytes and in lines.
    private static let (usualBytes, usualLines) = (500, 15)

    /// Appends a line to the text without its end, which must be CR LF, and returns its place.
    private mutating func add(_ line: some Collection<UInt8>) throws(Violation) -> Range<Int> {
        let start = text.count
        text.append(contentsOf: line)
        if text.count > start, text[text.count - 1] == 0x0A {
            text.removeLast()
            guard text.count > start, text[text.count - 1] == 0x0D else {
                throw Violation("a header line that ends without a carriage return")
            }
            text.removeLast()
        }
        let place = start..<text.count
        // Some implementations treat these characters as the end of a line or of the text (RFC 9110, 5.5).
        guard !text[place].contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) else {
            throw Violation("a header line with a control character in it")
        }
        return place
    }

    private static func tooLong(_ limits: Limits) -> Violation {
        Violation("a header of more than \(Text.grouped(UInt64(limits.bytes))) bytes")
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// RFC 9110, 5.6.2.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    // MARK: Framing

    /// Rejects a response whose end is not certain (RFC 9112, 6.1 and 6.3).
    private func checkFraming() throws(Violation) {
        let lengths = fields.filter { isNamed($0, "content-length") }.map { text[$0.value] }
        let codings = fields.filter { isNamed($0, "transfer-encoding") }.map { text[$0.value] }
        if !codings.isEmpty {
            guard lengths.isEmpty else { throw Violation("both a Content-Length and a Transfer-Encoding") }
            guard minorVersion > 0 else { throw Violation("a Transfer-Encoding in HTTP/1.0") }
            guard codings.count == 1, codings[0].map({ $0 | 0x20 }) == Array("chunked".utf8) else {
                throw Violation("a Transfer-Encoding other than chunked")
            }
        }
        guard let first = lengths.first else { return }
        // Equal lengths are accepted, which RFC 9112, 6.3 allows.
        guard lengths.allSatisfy({ $0 == first }) else { throw Violation("two different lengths of the body") }
        guard !first.isEmpty, first.allSatisfy({ (0x30...0x39).contains($0) }),
            Int64(String(decoding: first, as: UTF8.self)) != nil
        else { throw Violation("a Content-Length that is not a length") }
    }

    /// Whether only the end of the connection ends the body: HTTP/1 with neither a length nor chunks. A truncated body
    /// then looks like a complete body (RFC 9112, 8).
    var isUnframed: Bool {
        !contains("content-length") && !contains("transfer-encoding")
    }

    // MARK: Fields

    /// Whether there is a field with a name.
    ///
    /// - Parameter name: in lower case.
    func contains(_ name: String) -> Bool { fields.contains { isNamed($0, name) } }

    private func isNamed(_ field: Field, _ name: String) -> Bool {
        field.name.count == name.utf8.count && text[field.name].elementsEqual(name.utf8)
    }

    private func value(of field: Field) -> String { String(decoding: text[field.value], as: UTF8.self) }

    /// The value of the last field with a name; nil without such a field.
    ///
    /// - Parameter name: in lower case.
    subscript(_ name: String) -> String? {
        fields.last { isNamed($0, name) }.map(value)
    }

    /// The values of the fields with a name, in order, at most `limit`.
    func values(of name: String, atMost limit: Int = .max) -> [String] {
        fields.lazy.filter { isNamed($0, name) }.prefix(limit).map(value)
    }

    /// The value of a field that is a list: all of its lines, joined with commas (RFC 9110, 5.3); nil without such a
    /// field.
    func list(_ name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ",")
    }

    /// The value of a field that is sent back to the origin unchanged, such as an entity tag. Nil if there is no such
    /// field, if several fields differ, or if the value has bytes that are not ASCII, which a string may not preserve.
    func token(_ name: String) -> String? {
        guard let field = fields.first(where: { isNamed($0, name) }),
            fields.allSatisfy({ !isNamed($0, name) || text[$0.value] == text[field.value] }),
            text[field.value].allSatisfy({ (0x20..<0x7F).contains($0) })
        else { return nil }
        return value(of: field)
    }
}
