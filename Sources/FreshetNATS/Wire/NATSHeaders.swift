/// The headers of a message: fields, and the status of an answer that the server itself wrote (ADR-4 of NATS).
///
/// ```swift
/// var headers = NATSHeaders()
/// try headers.append("Nats-TTL", "30s")
/// ```
///
/// Names are compared as they are written: NATS distinguishes `A` from `a`.
public struct NATSHeaders: Hashable, Sendable {
    /// A field. Both texts are valid: they cannot end the line.
    public struct Field: Hashable, Sendable {
        public let name: String
        public let value: String
    }

    /// The most fields of a received message: headers are small facts about a message, and the server accepts any
    /// number.
    public static let mostFields = 256

    /// The status of the first line, such as 503 (no responders), 404 or 204 (end of a batch); nil in messages of
    /// other clients.
    public private(set) var status: Int?
    /// The text after the status, such as `EOB`; empty without a text.
    public private(set) var statusText = ""
    /// The fields in their order; a name may occur several times.
    public private(set) var fields: [Field] = []

    /// Headers without a field.
    public init() {}

    public var isEmpty: Bool { fields.isEmpty && status == nil }

    /// The value of the first field of this name; nil: there is no such field.
    public subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    /// Adds a field.
    ///
    /// - Parameters:
    ///   - name: printable ASCII characters other than `:`.
    ///   - value: text without control characters, and without blanks at its ends, which a reader would remove.
    /// - Throws: ``NATSError/invalidHeader(_:)`` with the name.
    public mutating func append(_ name: String, _ value: String) throws(NATSError) {
        guard Self.isName(name.utf8), Self.isValue(value.utf8) else { throw .invalidHeader(name) }
        fields.append(Field(name: name, value: value))
    }

    private static func isName(_ name: some Collection<UInt8>) -> Bool {
        !name.isEmpty && name.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
    }

    private static func isValue(_ value: some BidirectionalCollection<UInt8>) -> Bool {
        if let first = value.first, let last = value.last, isBlank(first) || isBlank(last) { return false }
        return value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}

extension NATSHeaders {
    /// The first word of a block.
    static let version = Array("NATS/1.0".utf8)

    /// Reads a block of headers, with the empty line at its end. The block comes from another client: the server does
    /// not check it.
    ///
    /// - Returns: nil if the block is malformed, or has more than ``mostFields`` fields.
    init?(block: ArraySlice<UInt8>) {
        guard block.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return nil }
        var rest = block.dropLast(2)
        guard let first = Self.takeLine(&rest), first.starts(with: Self.version),
            takeStatus(first.dropFirst(Self.version.count))
        else { return nil }
        while !rest.isEmpty {
            guard fields.count < Self.mostFields, let line = Self.takeLine(&rest),
                let colon = line.firstIndex(of: UInt8(ascii: ":")), Self.isName(line[..<colon])
            else { return nil }
            let value = Self.trimmed(line[(colon + 1)...])
            guard Self.isValue(value) else { return nil }
            fields.append(
                Field(
                    name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self)
                ))
        }
    }

    /// Takes what is after the version in the first line: nothing, or a status and perhaps a text.
    private mutating func takeStatus(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.first.map(Self.isBlank) ?? true else { return false }
        let words = Self.trimmed(text)
        if words.isEmpty { return true }
        let digits = words.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits.count == 3, let number = Int(String(decoding: digits, as: UTF8.self)) else { return false }
        let description = words.dropFirst(3)
        guard description.first.map(Self.isBlank) ?? true else { return false }
        let trimmed = Self.trimmed(description)
        guard Self.isValue(trimmed) else { return false }
        status = number
        statusText = String(decoding: trimmed, as: UTF8.self)
        return true
    }

    /// Takes a line without its end; nil: there is no end, or a single CR or LF.
    private static func takeLine(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: UInt8(ascii: "\r")), rest[(end + 1)...].first == UInt8(ascii: "\n") else {
            return nil
        }
        defer { rest = rest[(end + 2)...] }
        return rest[..<end]
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    /// The block with its empty line; nothing if there are no fields, because a message of a client has no status.
    var block: [UInt8] {
        guard !fields.isEmpty else { return [] }
        var bytes = Self.version
        bytes += "\r\n".utf8
        for field in fields {
            bytes += field.name.utf8
            bytes += ": ".utf8
            bytes += field.value.utf8
            bytes += "\r\n".utf8
        }
        bytes += "\r\n".utf8
        return bytes
    }
}
