import Testing

@testable import FreshetPipelines

@Suite("Minisign keys and signatures")
struct MinisignTests {
    private static let line = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
    private static let file = """
        untrusted comment: signature from minisign secret key
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
        trusted comment: timestamp:1556193335\tfile:test
        y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
        """

    @Test("A key is its line, alone or in its file, and its name is minisign's key number")
    func key() throws {
        let key = try MinisignKey(Self.line)
        #expect(key.name == "E7620F1842B4E81F")
        #expect(key.number.count == 8 && key.ed25519.count == 32)
        #expect(key.description == Self.line)
        for text in ["untrusted comment: minisign public key\r\n\(Self.line)\r\n", "\(Self.line)", "\n\(Self.line)\n"] {
            #expect(try MinisignKey(file: Array(text.utf8)) == key)
        }
        #expect(throws: MinisignKey.ValidationError(message: "contains no key")) {
            try MinisignKey(file: Array("untrusted comment: a\n".utf8))
        }
    }

    @Test(
        "Text that is not a key has an error",
        arguments: [
            ("", "is not a public key"), ("RWQ", "is not a line of Base64"), ("RWQf6LRC", "is not a public key"),
            (line.replacing("RW", with: "RU"), "is not a public key"), ("\(line)AAAA", "is not a public key"),
            (line.dropLast() + "!", "is not a line of Base64"), ("====", "is not a line of Base64"),
            (String(repeating: "RWRT", count: 53), "is a secret key"),
        ])
    func noKey(_ text: String, _ message: String) throws {
        let error = #expect(throws: MinisignKey.ValidationError.self) { try MinisignKey(text) }
        #expect(try #require(error).message.hasPrefix(message))
    }

    @Test("A signature is parsed with LF and with CRLF")
    func signature() throws {
        let signature = try MinisignSignature(Array(Self.file.utf8))
        #expect(signature.kind == .digest)
        #expect(signature.number == (try MinisignKey(Self.line)).number)
        #expect(signature.signature.count == 64 && signature.globalSignature.count == 64)
        #expect(String(decoding: signature.trustedComment, as: UTF8.self) == "timestamp:1556193335\tfile:test")
        #expect(signature.globalMessage == signature.signature + signature.trustedComment)
        #expect(try MinisignSignature(Array(Self.file.replacing("\n", with: "\r\n").utf8)) == signature)
        #expect(try MinisignSignature(Array("\(Self.file)\n".utf8)) == signature)
        #expect(try MinisignSignature(Array(Self.file.replacing("RUQ", with: "RWQ").utf8)).kind == .whole)
    }

    @Test(
        "A file that is not a signature has an error",
        arguments: [
            ("", "is not a signature of minisign"), ("<html>", "is not a signature of minisign"),
            (file.replacing("untrusted", with: "trusted"), "is not a signature of minisign"),
            (file.replacing("\ntrusted comment: ", with: "\ncomment: "), "is not a signature of minisign"),
            (String(file.dropLast(4)), "has a signature that is cut off"),
            (file.replacing("Zwo=", with: "Zw=="), "has a signature that is cut off"),
            (file.replacing("RUQ", with: "RVQ"), "has a signature of an unknown kind"),
        ])
    func noSignature(_ text: String, _ message: String) throws {
        let error = #expect(throws: MinisignSignature.ValidationError.self) { try MinisignSignature(Array(text.utf8)) }
        #expect(try #require(error).message.hasPrefix(message))
    }

    @Test(
        "The file name is the last segment of a URL's path",
        arguments: [
            ("https://a.example/b/c.tar", "c.tar"), ("https://a.example/b/c%20d?x=/y", "c d"),
            ("https://a.example/100%", "100%"), ("https://a.example/b/", nil), ("https://a.example", nil),
            ("https://a.example?b/c", nil),
        ] as [(String, String?)])
    func fileName(_ url: String, _ name: String?) {
        #expect(HTTPSource(url: url, host: "a.example").fileName == name)
    }

    @Test("A suffix follows the path, before the query")
    func suffix() {
        #expect(HTTPSource(url: "https://a/b?c=d", host: "a").adding(".minisig").url == "https://a/b.minisig?c=d")
        #expect(HTTPSource(url: "https://a/b", host: "a").adding(".minisig").url == "https://a/b.minisig")
    }
}
