/// A list of SHA-256 checksums in any of the usual forms: the lines of sha256sum(1), those of BSD's sha256(1) and
/// openssl-dgst(1), or one checksum alone. Lines of any other form are skipped: such lists have headings, comments,
/// checksums of other kinds and signatures around them.
///
/// The list is untrusted. It is read in one pass, and its texts are only copied.
struct ChecksumList: Hashable, Sendable {
    /// Why the list gives no checksum.
    enum ValidationError: Error, Hashable {
        case empty
        case missing(name: String)
        /// Files of this name have different checksums.
        case ambiguous(name: String)
        /// The list has several files, and the name of the file is not known.
        case noName
    }

    private struct Entry: Hashable {
        /// Lower-case hexadecimal digits.
        var digest: String
        /// Nil: the checksum has no file name.
        var name: [UInt8]?
    }

    private let entries: [Entry]

    init(_ bytes: [UInt8]) {
        entries = bytes.split(separator: UInt8(ascii: "\n")).compactMap { Self.entry($0) }
    }

    /// The checksum of a file, as 64 lower-case hexadecimal digits: that of the entry with this name, otherwise that of
    /// an entry with this name in any directory. If the list is one checksum without a name, it is that checksum.
    func digest(of name: String?) throws(ValidationError) -> String {
        guard let first = entries.first else { throw .empty }
        let digests = Set(entries.map(\.digest))
        if digests.count == 1, entries.allSatisfy({ $0.name == nil }) { return first.digest }
        guard let name else { throw .noName }
        // By bytes: comparing strings from an origin may take quadratic time.
        let (expected, path) = (Array(name.utf8), Array("/\(name)".utf8))
        let same = entries.filter { $0.name == expected }
        let found = same.isEmpty ? entries.filter { $0.name?.suffix(path.count).elementsEqual(path) == true } : same
        guard let digest = found.first?.digest else { throw .missing(name: name) }
        guard found.allSatisfy({ $0.digest == digest }) else { throw .ambiguous(name: name) }
        return digest
    }

    // MARK: Lines

    private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
        var line = line
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return sum(line) ?? tagged(line)
    }

    /// `HEX`, or `HEX  NAME`: a space, then a second space or `*` for the mode in which the file was read, then the
    /// name. A backslash before the checksum says that characters of the name that would break the line are escaped.
    private static func sum(_ line: ArraySlice<UInt8>) -> Entry? {
        var rest = line
        let isEscaped = rest.first == UInt8(ascii: "\\")
        if isEscaped { rest.removeFirst() }
        guard let digest = digest(rest.prefix(digits)) else { return nil }
        rest = rest.dropFirst(digits)
        while rest.last == UInt8(ascii: " ") || rest.last == UInt8(ascii: "\t") { rest.removeLast() }
        guard !rest.isEmpty else { return Entry(digest: digest) }
        guard rest.removeFirst() == UInt8(ascii: " "), let mode = rest.first else { return nil }
        if mode == UInt8(ascii: " ") || mode == UInt8(ascii: "*") { rest.removeFirst() }
        return Entry(digest: digest, name: name(rest, isEscaped: isEscaped))
    }

    /// `SHA256 (NAME) = HEX` of BSD, `SHA256(NAME)= HEX` and `SHA2-256(NAME)= HEX` of OpenSSL.
    private static func tagged(_ line: ArraySlice<UInt8>) -> Entry? {
        for tag in ["SHA256", "SHA2-256"] where line.starts(with: tag.utf8) {
            var rest = line.dropFirst(tag.utf8.count)
            if rest.first == UInt8(ascii: " ") { rest.removeFirst() }
            guard rest.popFirst() == UInt8(ascii: "("), let end = rest.lastIndex(of: UInt8(ascii: ")")) else {
                return nil
            }
            let name = name(rest[..<end], isEscaped: false)
            rest = rest[end...].dropFirst()
            if rest.first == UInt8(ascii: " ") { rest.removeFirst() }
            guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
            if rest.first == UInt8(ascii: " ") { rest.removeFirst() }
            return rest.count == digits ? digest(rest).map { Entry(digest: $0, name: name) } : nil
        }
        return nil
    }

    private static let digits = 64

    private static func digest(_ text: ArraySlice<UInt8>) -> String? {
        guard text.count == digits, text.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        return String(decoding: text, as: UTF8.self).lowercased()
    }

    /// The file name; nil: it is `-`, standard input.
    private static func name(_ text: ArraySlice<UInt8>, isEscaped: Bool) -> [UInt8]? {
        var name: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard isEscaped, byte == UInt8(ascii: "\\"), let next = rest.popFirst() else {
                name.append(byte)
                continue
            }
            switch next {
            case UInt8(ascii: "n"): name.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): name.append(UInt8(ascii: "\r"))
            default: name.append(next)
            }
        }
        if name.starts(with: "./".utf8) { name.removeFirst(2) }
        return name == [UInt8(ascii: "-")] ? nil : name
    }
}
