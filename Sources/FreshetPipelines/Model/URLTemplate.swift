/// A URL with places for values, such as `https://api.example.com/topics/{topic.id}/media?lang={language}`.
///
/// A place is a name in braces; after a dot comes the way into what the name stands for. Values are percent-encoded, all
/// but the unreserved characters (RFC 3986, 2.3), so that none can leave its place: no value makes a path longer, adds a
/// parameter or names another host.
package struct URLTemplate: Hashable, Sendable {
    /// Where a value goes: `{topic.id}` has the name `topic` and the path `id`.
    package struct Place: Hashable, Sendable, CustomStringConvertible {
        package var name: String
        package var path: [String]

        package init(_ name: String, path: [String] = []) {
            self.name = name
            self.path = path
        }

        /// What stands between braces; nil: that is not names with dots.
        package init?(named text: Substring) {
            let names = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
                .map { Substring($0) }
            guard let first = names.first, names.allSatisfy(URLTemplate.isName) else { return nil }
            name = String(first)
            path = names.dropFirst().map(String.init)
        }

        /// Without the braces.
        package var description: String { ([name] + path).joined(separator: ".") }
    }

    /// What is wrong with a template, or with a value for it.
    package enum ValidationError: Error, Hashable, Sendable {
        /// A `{` without its `}`, or the other way round.
        case unbalanced
        /// What stands between the braces is not names with dots.
        case notAName(String)
        /// The host, the port or the scheme would depend on a value.
        case beforePath(Place)
        case missing(Place)
        /// With this value a segment of the path would be empty, `.` or `..`: another path.
        case notASegment(Place, String)
        case tooLong(limit: Int)
    }

    private enum Part: Hashable {
        case text(String)
        case place(Place, inQuery: Bool)
    }

    /// The longest URL, in bytes: what RFC 9110, 4.1 asks every server to take.
    package static let maximumLength = 8000

    private let parts: [Part]

    package init(_ text: String) throws(ValidationError) {
        var parts: [Part] = []
        var inQuery = false
        let endOfHost = Self.endOfHost(text)
        // By bytes, as whoever takes the URL apart does.
        var rest = Substring(text).utf8
        while let brace = rest.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) {
            guard rest[brace] == UInt8(ascii: "{"), let end = rest[brace...].firstIndex(of: UInt8(ascii: "}")) else {
                throw .unbalanced
            }
            let before = rest[..<brace]
            if !before.isEmpty { parts.append(.text(String(Substring(before)))) }
            inQuery = inQuery || before.contains(UInt8(ascii: "?"))
            let place = try Self.place(Substring(rest[rest.index(after: brace)..<end]))
            guard let endOfHost, endOfHost < brace else { throw .beforePath(place) }
            parts.append(.place(place, inQuery: inQuery))
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { parts.append(.text(String(Substring(rest)))) }
        self.parts = parts
    }

    private static func place(_ text: Substring) throws(ValidationError) -> Place {
        guard let place = Place(named: text) else { throw .notAName(String(text)) }
        return place
    }

    /// Letters, digits, `-` and `_`, and no digit or `-` first: what a place, and a parameter, may be called.
    package static func isName(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first), first != UInt8(ascii: "-") else { return false }
        return text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }

    /// Where the path or the query begins; nil: there is none.
    private static func endOfHost(_ text: String) -> String.Index? {
        let bytes = text.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return nil
        }
        return bytes[colon...].dropFirst(3).firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
    }

    /// The place that stands for a whole URL, as `{item.url}` does, which is no template; nil: this is something else.
    package static func whole(_ text: String) -> Place? {
        let bytes = Substring(text).utf8
        guard bytes.count > 1, bytes.first == UInt8(ascii: "{"), bytes.last == UInt8(ascii: "}") else { return nil }
        return Place(named: Substring(bytes.dropFirst().dropLast()))
    }

    /// The places in their order; one that stands twice is there twice.
    package var places: [Place] {
        parts.compactMap { if case .place(let place, _) = $0 { place } else { nil } }
    }

    /// The URL with these values.
    package func url(_ value: (Place) -> String?) throws(ValidationError) -> String {
        var url: [UInt8] = []
        // Where values of the path stand.
        var filled: [(place: Place, text: String, offset: Int)] = []
        for part in parts {
            switch part {
            case .text(let text): url += text.utf8
            case .place(let place, let inQuery):
                guard let text = value(place) else { throw .missing(place) }
                if !inQuery { filled.append((place, text, url.count)) }
                Self.append(text, to: &url)
            }
            guard url.count <= Self.maximumLength else { throw .tooLong(limit: Self.maximumLength) }
        }
        for (place, text, offset) in filled where Self.isNoSegment(url, around: offset) {
            throw .notASegment(place, text)
        }
        return String(decoding: url, as: UTF8.self)
    }

    /// Whether the segment of the path at an offset would be taken for none (RFC 3986, 5.2.4).
    private static func isNoSegment(_ url: [UInt8], around offset: Int) -> Bool {
        // No more than is looked at: a segment may have many values.
        let before = url[..<offset].suffix(3).reversed().prefix { $0 != UInt8(ascii: "/") }
        let after = url[offset...].prefix(3).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return before.count + after.count <= 2 && (before + after).allSatisfy { $0 == UInt8(ascii: ".") }
    }

    /// Whether a byte may stand between the braces of a place.
    static func mayBeInPlace(_ byte: UInt8) -> Bool { isLetterOrDigit(byte) || "-_.".utf8.contains(byte) }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 48...57: true
        default: false
        }
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986, 2.3).
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
