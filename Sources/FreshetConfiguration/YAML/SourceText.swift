/// The text of one configuration file, kept while it is read so that diagnostics can show its lines.
struct SourceText: Sendable {
    /// The largest file that is read, in bytes. The file of a pipeline has a few hundred.
    static let maximumSize = 1 << 20

    let file: String
    /// UTF-8, without a byte order mark.
    let bytes: [UInt8]
    /// The locations of secrets, such as the values of request headers.
    var secrets: [Secret] = []
    /// Lines that may contain a secret at an unknown column, because the file is not valid YAML there.
    var hiddenLines: Set<Int> = []

    struct Secret: Sendable {
        var start: (line: Int, column: Int)
        /// The position after the last character.
        var end: (line: Int, column: Int)
    }

    init(file: String, bytes: [UInt8]) {
        self.file = file
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        self.bytes = bytes.starts(with: mark) ? Array(bytes.dropFirst(mark.count)) : bytes
    }

    /// Whether a value can have characters besides ASCII: as they are, or as escapes in quotes.
    var mayHaveOtherCharacters: Bool { bytes.contains { $0 >= 0x80 || $0 == UInt8(ascii: "\\") } }

    /// The location of a byte.
    func location(ofByte offset: Int) -> Location {
        var line = 1
        var start = 0
        var index = 0
        let end = min(offset, bytes.count)
        while index < end {
            let width = breakWidth(at: index)
            if width > 0, index + width <= end {
                line += 1
                start = index + width
            }
            index += max(width, 1)
        }
        let column = String(decoding: bytes[start..<end], as: UTF8.self).unicodeScalars.count + 1
        return Location(file: file, line: line, column: column)
    }

    /// The characters of a line, counted from 1, without its break; nil past the end.
    func line(_ number: Int) -> [Unicode.Scalar]? {
        var current = 1
        var start = 0
        var index = 0
        while index < bytes.count {
            let width = breakWidth(at: index)
            if width > 0 {
                if current == number { break }
                current += 1
                start = index + width
            }
            index += max(width, 1)
        }
        guard current == number else { return nil }
        return Array(String(decoding: bytes[start..<min(index, bytes.count)], as: UTF8.self).unicodeScalars)
    }

    /// The location, or the nearest one that exists: the parser reports the end of input past the last line.
    func clamped(_ location: Location) -> Location {
        if let line = line(location.line) {
            return Location(
                file: file, line: location.line, column: min(max(location.column, 1), line.count + 1))
        }
        return self.location(ofByte: bytes.count)
    }

    /// The source line of a location, without its secrets; nil if the columns of the secrets are not known.
    func excerpt(line number: Int, column: Int) -> Diagnostic.Excerpt? {
        guard !hiddenLines.contains(number), var scalars = line(number) else { return nil }
        for secret in secrets where secret.start.line <= number && number <= secret.end.line {
            let start = secret.start.line == number ? secret.start.column - 1 : 0
            let end = secret.end.line == number ? min(secret.end.column - 1, scalars.count) : scalars.count
            guard start < end else { continue }
            for index in start..<end { scalars[index] = "*" }
        }
        return Diagnostic.Excerpt(line: Self.masking(scalars), column: column)
    }

    /// Replaces the secrets of URLs, and what follows a key of a secret that the format does not read as a key, by
    /// asterisks.
    static func masking(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var result = maskingURLs(scalars)
        guard let start = valueOfSecret(in: result) else { return result }
        for index in start..<result.count { result[index] = "*" }
        return result
    }

    /// Characters in which a key of a secret is looked for. Longer lines are hidden from there on.
    private static let longestSearch = 4_096

    /// Where the value begins after a key of a secret in a line: after `api_key=` and `auth::`, or after a misspelt key;
    /// nil: there is no such key. A correct key with one colon does not count: ``secrets`` has its value, if it is one.
    private static func valueOfSecret(in line: [Unicode.Scalar]) -> Int? {
        var index = 0
        let end = min(line.count, longestSearch)
        while index < end {
            guard isInWord(line[index]) else {
                index += 1
                continue
            }
            let start = index
            while index < end, isInWord(line[index]) { index += 1 }
            var next = index
            while next < end, isBetweenKeyAndColon(line[next]) { next += 1 }
            guard next < end, line[next] == ":" || line[next] == "=" else { continue }
            let separators = next
            while next < end, line[next] == ":" || line[next] == "=" || line[next] == " " { next += 1 }
            guard next < line.count else { continue }
            let isPlainKey = line[separators] == ":" && !line[(separators + 1)..<next].contains { $0 != " " }
            let word = String(String.UnicodeScalarView(line[start..<index]))
            if KeySynonyms.mayHoldSecret(word) ? !isPlainKey : KeySynonyms.isNearlySecret(word) { return next }
        }
        return end < line.count ? end : nil
    }

    private static func isBetweenKeyAndColon(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        // The last one is a space that does not break the line, which some keyboards write easily.
        case " ", "\t", "\"", "'", "\u{A0}": true
        default: false
        }
    }

    private static func isInWord(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-", "_": true
        default: false
        }
    }

    /// Replaces the user information and the query of each URL in a line by asterisks, character by character.
    static func maskingURLs(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var result = scalars
        var index = 0
        while index + 2 < result.count {
            guard result[index] == ":", result[index + 1] == "/", result[index + 2] == "/" else {
                index += 1
                continue
            }
            let start = index + 3
            let end = result[start...].firstIndex { " \t\"',}]\n".unicodeScalars.contains($0) } ?? result.count
            // Up to the last '@': a password may contain an '@' that should have been percent-encoded.
            if let at = result[start..<end].lastIndex(of: "@") {
                for position in start..<at { result[position] = "*" }
            }
            if let query = result[start..<end].firstIndex(of: "?") {
                for position in (query + 1)..<end { result[position] = "*" }
            }
            index = end
        }
        return result
    }

    /// The length of the line break that starts at a byte: 2 for CR LF, 1 for LF or CR, 0 for anything else.
    private func breakWidth(at index: Int) -> Int {
        switch bytes[index] {
        case UInt8(ascii: "\n"): 1
        case UInt8(ascii: "\r"): index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "\n") ? 2 : 1
        default: 0
        }
    }
}
