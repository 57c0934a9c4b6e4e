/// The one place that decides what of a text may be shown.
///
/// A URL's user info and its query may hold secrets: they go wherever a URL is shown. The log handler applies
/// ``text(_:)`` to each value; who shows a URL elsewhere (control interface, command line) calls ``url(_:)``.
public enum Redaction {
    /// A URL without user info and fragment, and with `?…` in place of its query.
    ///
    /// `https://ann:pw@example.com/a?token=1#b` becomes `https://example.com/a?…`. What is no URL with an authority
    /// comes back with its query removed too.
    public static func url(_ url: String) -> String { Self.url(url[...]) }

    private static func url(_ url: Substring) -> String {
        // RFC 3986, 3: the authority ends at the first of / ? #, and its user info at its last @. Bytes, not
        // characters: a combining mark after an @ must not hide it.
        let bytes = url.utf8
        var result = ""
        var start = bytes.startIndex
        if let mark = bytes.firstPlace(of: "://".utf8) {
            result += url[..<mark.upperBound]
            start = mark.upperBound
            let authority = bytes[start...].prefix { $0 != slash && $0 != questionMark && $0 != hash }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { start = bytes.index(after: at) }
        }
        let shown = bytes[start...].prefix { $0 != questionMark && $0 != hash }
        result += url[start..<shown.endIndex]
        if shown.endIndex < bytes.endIndex, bytes[shown.endIndex] == questionMark { result += "?…" }
        return result
    }

    private static let slash = UInt8(ascii: "/")
    private static let questionMark = UInt8(ascii: "?")
    private static let hash = UInt8(ascii: "#")

    /// A text in which each URL (`scheme://…`, up to a space, a quotation mark or an angle bracket) is redacted.
    public static func text(_ text: String) -> String {
        // The common case: nothing to do, nothing to allocate.
        guard text.utf8.firstPlace(of: "://".utf8) != nil else { return text }
        var result = ""
        var rest = text[...]
        while let mark = rest.utf8.firstPlace(of: "://".utf8) {
            let end = rest[mark.upperBound...].unicodeScalars.firstIndex(where: endsURL) ?? rest.endIndex
            // What stands before the mark holds no secret by itself, so where the scheme begins does not matter.
            result += url(rest[..<end])
            rest = rest[end...]
        }
        return result + rest
    }

    private static func endsURL(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar == "\"" || scalar == "<" || scalar == ">"
    }
}

extension Collection where Element == UInt8 {
    /// The first place where `other` begins. Not called as the one of the regular expressions, which would be taken for
    /// strings and builds tables first.
    fileprivate func firstPlace(of other: some Collection<UInt8>) -> Range<Index>? {
        guard let first = other.first else { return nil }
        var start = startIndex
        while let found = self[start...].firstIndex(of: first) {
            var end = found
            var rest = other.startIndex
            while rest < other.endIndex, end < endIndex, self[end] == other[rest] {
                formIndex(after: &end)
                other.formIndex(after: &rest)
            }
            if rest == other.endIndex { return found..<end }
            start = index(after: found)
        }
        return nil
    }
}
