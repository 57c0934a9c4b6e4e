import Testing

@testable import FreshetPipelines

@Suite("Checksum lists")
struct ChecksumListTests {
    private static let one = String(repeating: "0a", count: 32)
    private static let two = String(repeating: "1b", count: 32)

    private func digest(of name: String?, in text: String) throws(ChecksumList.ValidationError) -> String {
        try ChecksumList(Array(text.utf8)).digest(of: name)
    }

    @Test(
        "A checksum is found in each usual form of list",
        arguments: [
            "\(one)  a.tar", "\(one) *a.tar", "\(one) a.tar", "\(one)  ./a.tar", "\(one)  a.tar\r",
            "\(one.uppercased())  a.tar", "SHA256 (a.tar) = \(one)", "SHA256(a.tar)= \(one)",
            "SHA2-256(a.tar)= \(one)", "\(one)", "\(one)\n", "  \n\(one)  \r\n", "\(one)  -",
            "\(two)  b\n\(one)  a.tar\n",
            "\(one)  pool/a.tar\n\(two)  b", "\(one)  a.tar\n\(two)  old/a.tar",
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\(one)  a.tar\n-----BEGIN PGP SIGNATURE-----\n\niQ==\n",
            "SHA512 (a.tar) = \(two)\(two)\nSHA256 (a.tar) = \(one)",
            "# sums\n\(two)\(two)  a.tar\n\(one)  a.tar",
        ])
    func found(_ text: String) throws {
        #expect(try digest(of: "a.tar", in: text) == Self.one)
    }

    @Test("Names may have spaces, parentheses and backslash escapes")
    func names() throws {
        let text = """
            \(Self.one)  two words
            \\\(Self.two)  back\\\\slash\\nline
            SHA256 (a (1)) = \(Self.two)
            """
        #expect(try digest(of: "two words", in: text) == Self.one)
        #expect(try digest(of: "back\\slash\nline", in: text) == Self.two)
        #expect(try digest(of: "a (1)", in: text) == Self.two)
    }

    @Test("A list with one checksum alone matches the content, whatever its name is")
    func alone() throws {
        #expect(try digest(of: nil, in: Self.one) == Self.one)
        #expect(throws: ChecksumList.ValidationError.noName) { try digest(of: nil, in: "\(Self.one)  a") }
    }

    @Test(
        "A missing checksum is not guessed",
        arguments: [
            ("", ChecksumList.ValidationError.empty), ("<html>404</html>", .empty), ("\(one.dropLast())  a", .empty),
            ("\(one)0  a", .empty), ("\(one.dropLast())g  a", .empty), ("SHA256 (a) = \(one)0", .empty),
            ("SHA256 (a = \(one)", .empty), ("\(one)  b", .missing(name: "a")), ("\(one)  ba", .missing(name: "a")),
            ("\(one)  x/a\n\(two)  y/a", .ambiguous(name: "a")), ("\(one)  a\n\(two)  a", .ambiguous(name: "a")),
            ("\(one)\n\(two)", .missing(name: "a")),
        ])
    func errors(_ text: String, _ error: ChecksumList.ValidationError) {
        #expect(throws: error) { try digest(of: "a", in: text) }
    }

    @Test("Several entries of one name with the same checksum are accepted")
    func twice() throws {
        #expect(try digest(of: "a", in: "\(Self.one)  x/a\n\(Self.one)  y/a") == Self.one)
    }
}
