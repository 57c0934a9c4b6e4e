/// Removes secrets from URLs in texts.
///
/// The user info and the query of a URL may contain secrets, so they are removed wherever a URL is shown; of a query,
/// the names of its parameters stay, and the values of a few harmless ones. The log
/// handler applies ``text(_:)`` to each value; other code that shows a URL (control interface, command line) calls
/// ``url(_:)``.
public enum Redaction {
    /// A URL without user info and fragment, and with `…` in place of the values of its query.
    ///
    /// `https://ann:pw@example.com/a?token=1&lang=de#b` becomes `https://example.com/a?token=…&lang=de`. If the text is
    /// not a URL with an authority, the values are removed, too.
    public static func url(_ url: String) -> String { Self.url(url[...]) }

    private static func url(_ url: Substring) -> String {
        // RFC 3986, 3: the authority ends at the first of / ? #, and its user info at its last @. Compare bytes, not
        // characters: a combining mark after an @ must not hide it.
        let bytes = url.utf8
        var result = ""
        var start = bytes.startIndex
        if let mark = bytes.firstMark {
            result += url[..<mark.upperBound]
            start = mark.upperBound
            let authority = bytes[start...].prefix { $0 != slash && $0 != questionMark && $0 != hash }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { start = bytes.index(after: at) }
        }
        let shown = bytes[start...].prefix { $0 != questionMark && $0 != hash }
        result += url[start..<shown.endIndex]
        if shown.endIndex < bytes.endIndex, bytes[shown.endIndex] == questionMark {
            let start = bytes.index(after: shown.endIndex)
            result += "?" + query(url[start..<(bytes[start...].firstIndex(of: hash) ?? bytes.endIndex)])
        }
        return result
    }

    /// The parameters whose values are shown: they choose a form of the content, and identify no person.
    private static let harmless: Set<String> = [
        "count", "fields", "format", "lang", "language", "limit", "locale", "offset", "order", "page", "per_page",
        "sort",
        "version",
    ]
    /// The longest name and value that are shown, in bytes; and how many parameters.
    private static let nameLimit = 20
    private static let valueLimit = 16
    private static let parameterLimit = 8

    /// A query without values, such as `q=…&lang=de`. A part that does not look like `name=value` may be a secret as a
    /// whole, for example a token in Base64.
    private static func query(_ query: Substring) -> String {
        var parts: [String] = []
        for part in query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            guard parts.count < parameterLimit else {
                parts.append("…")
                break
            }
            let name = part.prefix { $0 != UInt8(ascii: "=") }
            let value = part.dropFirst(name.count + 1)
            guard (1...nameLimit).contains(name.count), name.allSatisfy(isNameByte), !value.isEmpty,
                value.first != UInt8(ascii: "=")
            else {
                if parts.last != "…" { parts.append("…") }
                continue
            }
            let text = String(decoding: name, as: UTF8.self)
            let isShown = harmless.contains(text) && value.count <= valueLimit && value.allSatisfy(isValueByte)
            parts.append("\(text)=\(isShown ? String(decoding: value, as: UTF8.self) : "…")")
        }
        return parts.joined(separator: "&")
    }

    /// Letters, `_` and `-`: a word, and hardly a token.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "-")
    }

    private static func isValueByte(_ byte: UInt8) -> Bool {
        isNameByte(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static let slash = UInt8(ascii: "/")
    private static let questionMark = UInt8(ascii: "?")
    private static let hash = UInt8(ascii: "#")

    /// A text in which each URL (`scheme://…`, up to a space, a quotation mark or an angle bracket) is redacted.
    public static func text(_ text: String) -> String {
        // The common case needs no work and no allocation.
        guard text.utf8.firstMark != nil else { return text }
        var result = ""
        var rest = text[...]
        while let mark = rest.utf8.firstMark {
            let end = rest[mark.upperBound...].unicodeScalars.firstIndex(where: endsURL) ?? rest.endIndex
            // The text before the mark contains no secret, so the start of the scheme does not matter.
            result += url(rest[..<end])
            rest = rest[end...]
        }
        return result + rest
    }

    private static func endsURL(_ scalar: Unicode.Scalar) -> Bool {
        // Almost all are ASCII, for which no table is needed.
        if scalar.isASCII {
            return scalar == " " || ("\t"..."\r").contains(scalar) || scalar == "\"" || scalar == "<" || scalar == ">"
        }
        return scalar.properties.isWhitespace
    }
}

extension Collection where Element == UInt8 {
    /// The first `://`. Each value of each log line is searched, so the bytes are read in place if they are contiguous, as
    /// those of a text are.
    fileprivate var firstMark: Range<Index>? {
        let found =
            withContiguousStorageIfAvailable { Self.offsetOfMark(in: $0) }
            ?? Array(self).withUnsafeBufferPointer { Self.offsetOfMark(in: $0) }
        guard let found else { return nil }
        let start = index(startIndex, offsetBy: found)
        return start..<index(start, offsetBy: 3)
    }

    private static func offsetOfMark(in bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        var offset = 0
        while offset + 2 < bytes.count {
            if bytes[offset] == UInt8(ascii: ":"), bytes[offset + 1] == UInt8(ascii: "/"),
                bytes[offset + 2] == UInt8(ascii: "/")
            {
                return offset
            }
            offset += 1
        }
        return nil
    }
}
