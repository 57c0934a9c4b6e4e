/// A list of SHA-256 sums, in any of the forms in which they are published: the lines of sha256sum(1), those of BSD's
/// sha256(1) and openssl-dgst(1), or one sum alone. Lines of any other form are passed over: such lists have headings,
/// comments, sums of other kinds and signatures around them.
///
/// It comes from anywhere, and is read in one pass without anything but copies of its texts.
struct ChecksumList: Hashable, Sendable {
    /// What the list does not say.
    enum ValidationError: Error, Hashable {
        case empty
        case notThere(name: String)
        /// Files of this name have different sums.
        case ambiguous(name: String)
        /// Several files are in it, and nothing says which is meant.
        case noName
    }

    private struct Entry: Hashable {
        /// In lower-case hexadecimal digits.
        var digest: String
        /// Nil: the sum stands alone.
        var name: [UInt8]?
    }

    private let entries: [Entry]

    init(_ bytes: [UInt8]) {
        entries = bytes.split(separator: UInt8(ascii: "\n")).compactMap { Self.entry($0) }
    }

    /// The sum of a file, as 64 hexadecimal digits in lower case. It is the one with this name; if there is none, the one
    /// in any directory with this name; if the list is one sum without a name, that.
    func digest(of name: String?) throws(ValidationError) -> String {
        guard let first = entries.first else { throw .empty }
        let digests = Set(entries.map(\.digest))
        if digests.count == 1, entries.allSatisfy({ $0.name == nil }) { return first.digest }
        guard let name else { throw .noName }
        // By bytes: to compare strings that an origin has made may take quadratic time.
        let (wanted, path) = (Array(name.utf8), Array("/\(name)".utf8))
        let same = entries.filter { $0.name == wanted }
        let found = same.isEmpty ? entries.filter { $0.name?.suffix(path.count).elementsEqual(path) == true } : same
        guard let digest = found.first?.digest else { throw .notThere(name: name) }
        guard found.allSatisfy({ $0.digest == digest }) else { throw .ambiguous(name: name) }
        return digest
    }

    // MARK: Lines

    private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
        var line = line
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return sum(line) ?? tagged(line)
    }

    /// `HEX`, or `HEX  NAME`: a space, then another one or `*` for how the file was read, then the name. With a backslash
    /// before the sum, the name has some for what would break a line.
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

    /// Nil: it is that of no file, `-` for standard input.
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
