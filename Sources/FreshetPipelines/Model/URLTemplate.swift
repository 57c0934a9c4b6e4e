/// A URL with placeholders, such as `https://api.example.com/topics/{topic.id}/media?lang={language}`.
///
/// A placeholder is a name in braces; a path into its value may follow after a dot. Values are percent-encoded, except
/// for the unreserved characters (RFC 3986, 2.3), so that a value cannot change the structure: it does not make a path
/// longer, add a parameter or name another host.
package struct URLTemplate: Hashable, Sendable {
    /// A placeholder: `{topic.id}` has the name `topic` and the path `id`.
    package struct Placeholder: Hashable, Sendable, CustomStringConvertible {
        package var name: String
        package var path: [String]

        package init(_ name: String, path: [String] = []) {
            self.name = name
            self.path = path
        }

        /// Parses the text between the braces; nil: it is not names with dots between them.
        package init?(named text: Substring) {
            let names = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
                .map { Substring($0) }
            guard let first = names.first, names.allSatisfy(URLTemplate.isName) else { return nil }
            name = String(first)
            path = names.dropFirst().map(String.init)
        }

        /// The text without the braces.
        package var description: String { ([name] + path).joined(separator: ".") }
    }

    /// Why a template, or a value for it, is invalid.
    package enum ValidationError: Error, Hashable, Sendable {
        /// A `{` without its `}`, or a `}` without its `{`.
        case unbalanced
        /// The text between the braces is not names with dots between them.
        case notAName(String)
        /// The host, the port or the scheme would depend on a value.
        case beforePath(Placeholder)
        case missing(Placeholder)
        /// With this value a segment of the path is empty, `.` or `..`, which changes the path.
        case notASegment(Placeholder, String)
        case tooLong(limit: Int)
    }

    private enum Part: Hashable {
        case text(String)
        case placeholder(Placeholder, inQuery: Bool)
    }

    /// The longest URL, in bytes: RFC 9110, 4.1 recommends that every server supports it.
    package static let maximumLength = 8000

    private let parts: [Part]

    package init(_ text: String) throws(ValidationError) {
        var parts: [Part] = []
        var inQuery = false
        lazy var endOfHost = Self.endOfHost(text)
        // By bytes, as the receiver parses the URL.
        var rest = Substring(text).utf8
        while let brace = rest.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) {
            guard rest[brace] == UInt8(ascii: "{"), let end = rest[brace...].firstIndex(of: UInt8(ascii: "}")) else {
                throw .unbalanced
            }
            let before = rest[..<brace]
            if !before.isEmpty { parts.append(.text(String(Substring(before)))) }
            inQuery = inQuery || before.contains(UInt8(ascii: "?"))
            let placeholder = try Self.placeholder(Substring(rest[rest.index(after: brace)..<end]))
            guard let endOfHost, endOfHost < brace else { throw .beforePath(placeholder) }
            parts.append(.placeholder(placeholder, inQuery: inQuery))
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { parts.append(.text(String(Substring(rest)))) }
        self.parts = parts
    }

    private static func placeholder(_ text: Substring) throws(ValidationError) -> Placeholder {
        guard let placeholder = Placeholder(named: text) else { throw .notAName(String(text)) }
        return placeholder
    }

    /// Whether a text is a valid name of a placeholder or parameter: letters, digits, `-` and `_`, neither a digit nor
    /// `-` first.
    package static func isName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first), first != UInt8(ascii: "-") else { return false }
        return text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }

    /// Where the path or the query begins; nil: there is neither.
    private static func endOfHost(_ text: String) -> String.Index? {
        let bytes = text.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return nil
        }
        return bytes[colon...].dropFirst(3).firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
    }

    /// The placeholder if it is the whole URL, such as `{item.url}`, which is not a template; nil: the text is
    /// something else.
    package static func whole(_ text: String) -> Placeholder? {
        let bytes = Substring(text).utf8
        guard bytes.count > 1, bytes.first == UInt8(ascii: "{"), bytes.last == UInt8(ascii: "}") else { return nil }
        return Placeholder(named: Substring(bytes.dropFirst().dropLast()))
    }

    /// The placeholders in order, including duplicates.
    package var placeholders: [Placeholder] {
        parts.compactMap { if case .placeholder(let placeholder, _) = $0 { placeholder } else { nil } }
    }

    /// The URL with these values.
    package func url(_ value: (Placeholder) -> String?) throws(ValidationError) -> String {
        var url: [UInt8] = []
        // The positions of values in the path.
        var filled: [(placeholder: Placeholder, text: String, offset: Int)] = []
        for part in parts {
            switch part {
            case .text(let text): url += text.utf8
            case .placeholder(let placeholder, let inQuery):
                guard let text = value(placeholder) else { throw .missing(placeholder) }
                if !inQuery { filled.append((placeholder, text, url.count)) }
                Self.append(text, to: &url)
            }
            guard url.count <= Self.maximumLength else { throw .tooLong(limit: Self.maximumLength) }
        }
        for (placeholder, text, offset) in filled where Self.isNoSegment(url, around: offset) {
            throw .notASegment(placeholder, text)
        }
        return String(decoding: url, as: UTF8.self)
    }

    /// Whether the path segment at an offset is empty or a dot segment (RFC 3986, 5.2.4).
    private static func isNoSegment(_ url: [UInt8], around offset: Int) -> Bool {
        // At most three bytes are read on each side: a segment may have many values.
        let before = url[..<offset].suffix(3).reversed().prefix { $0 != UInt8(ascii: "/") }
        let after = url[offset...].prefix(3).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return before.count + after.count <= 2 && (before + after).allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// Whether a byte is allowed between the braces of a placeholder.
    static func mayBeInPlaceholder(_ byte: UInt8) -> Bool { isLetterOrDigit(byte) || "-_.".utf8.contains(byte) }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 48...57: true
        default: false
        }
    }

    /// Appends a text, percent-encoding all but the unreserved characters (RFC 3986, 2.3).
    static func append(_ text: String, to url: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            if isLetterOrDigit(byte) || "-._~".utf8.contains(byte) {
                url.append(byte)
            } else {
                url += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}
