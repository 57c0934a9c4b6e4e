import TestSupport
import Testing

@testable import FreshetNATS

/// Keys of RFC 8032, 7.1, as NKEYs.
enum TestKeys {
    static let seed = "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
    static let publicKey = "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
    static let otherSeed = "SUAEZTIITMUP7FW2TW3MGRXMCFHA6W4KGGPTLK5GETNIZ5XNJ64KN63OVI"
    static let accountSeed = "SAAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YHY3Q"
}

extension NKeySeed {
    convenience init(text: String) throws(NATSError) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: text.utf8)
        try self.init(UnsafeRawBufferPointer(copy))
    }
}

@Suite("The NKEY of a user") struct NKeyTests {
    @Test("a seed has the public key of its secret, and signs as RFC 8032 says")
    func vector() throws {
        let seed = try NKeySeed(text: " \(TestKeys.seed)\n")
        #expect(seed.publicKey == TestKeys.publicKey)
        let signature = try #require(seed.rawSignature(of: []))
        #expect(signature.prefix(4) == [0xE5, 0x56, 0x43, 0x00] && signature.count == 64)
        #expect(signature.last == 0x0B)
    }

    @Test("a server gets no signature of a statement by passing it as a nonce")
    func nonce() throws {
        let seed = try NKeySeed(text: TestKeys.seed)
        #expect(seed.signature(ofNonce: "S3Kn0W-_abcDEF1") != nil)
        for text in [
            "", "freshet fleet record\n{}", "{}", "a b", "a\u{0}", "ä", String(repeating: "a", count: 65),
        ] {
            #expect(seed.signature(ofNonce: text) == nil)
        }
    }

    @Test("a statement is signed for one purpose, and verified with the public key")
    func statement() throws {
        let seed = try NKeySeed(text: TestKeys.seed)
        let key = try NKeyPublicKey(TestKeys.publicKey)
        let statement = Array("content".utf8)
        let signature = try #require(seed.signature(of: statement, as: "a"))
        #expect(key.isSigned(statement, signature, as: "a"))
        #expect(!key.isSigned(statement, signature, as: "b"))
        #expect(!key.isSigned(statement + [0], signature, as: "a"))
        #expect(!key.isSigned(statement, Array(signature.dropLast()), as: "a"))
        let other = try NKeySeed(text: TestKeys.otherSeed)
        #expect(!(try NKeyPublicKey(other.publicKey)).isSigned(statement, signature, as: "a"))
    }

    @Test("a text that is not a public key of a user is rejected with its reason")
    func publicKeys() {
        for (text, reason) in [
            ("", "it has 0 characters instead of 56"),
            (TestKeys.seed, "it has 58 characters instead of 56"),
            (TestKeys.publicKey.lowercased(), "it has a character that is not Base32"),
            ("A" + TestKeys.publicKey.dropFirst(), "its checksum is wrong"),
            (String(TestKeys.publicKey.dropLast()) + "A", "its checksum is wrong"),
        ] {
            #expect(throws: NATSError.invalidPublicKey(reason)) { _ = try NKeyPublicKey(text) }
        }
    }

    @Test("a signature is text that is safe in URLs and JSON")
    func base64() {
        #expect(NKeyText.base64(Array("fo".utf8)) == "Zm8")
        #expect(NKeyText.base64([0xFB, 0xFF, 0xFE]) == "-__-")
        #expect(NKeyText.base64([]) == "")
    }

    @Test("another text is rejected with its reason, and without the text")
    func invalid() {
        for (text, reason) in [
            ("", "it is empty"), (" \n", "it is empty"), ("SU", "it has 2 characters instead of 58"),
            (TestKeys.publicKey, "it has 56 characters instead of 58"),
            (TestKeys.seed.lowercased(), "it has a character that is not Base32"),
            (String(TestKeys.seed.dropLast()) + "B", "its checksum is wrong"),
            (TestKeys.accountSeed, "it is another kind of key; the seed of a user begins with SU"),
        ] {
            let error = #expect(throws: NATSError.invalidSeed(reason)) { _ = try NKeySeed(text: text) }
            #expect(error?.description.contains("SUAJ2") == false)
        }
    }

    @Test("a seed is read from a file")
    func file() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("\(TestKeys.seed)\n", to: "seed")
        #expect(try NKeySeed(contentsOf: path).publicKey == TestKeys.publicKey)
        try directory.write(String(repeating: " ", count: 1_025), to: "long")
        #expect(throws: NATSError.invalidSeed("the file is too long")) {
            _ = try NKeySeed(contentsOf: directory.path("long"))
        }
        #expect(throws: NATSError.self) { _ = try NKeySeed(contentsOf: directory.path("missing")) }
    }
}

@Suite("The address of a server") struct AddressTests {
    @Test("is a URL with https, or with http for this machine")
    func valid() throws {
        for (url, description, usesTLS) in [
            ("https://nats.example", "nats.example:4222", true),
            ("https://nats.example:443/", "nats.example:443", true),
            ("https://[2001:db8::1]:4222", "[2001:db8::1]:4222", true), ("http://127.0.0.1", "127.0.0.1:4222", false),
            ("http://127.9.9.9:1", "127.9.9.9:1", false), ("http://[::1]:4333", "[::1]:4333", false),
            ("http://localhost:4222", "localhost:4222", false),
        ] {
            let address = try NATSServerAddress(url)
            #expect(address.description == description && address.usesTLS == usesTLS, "\(url)")
        }
    }

    @Test(
        "with http, another host is refused",
        arguments: [
            "http://nats.example:4222", "http://10.0.0.1", "http://[::2]", "http://127.0.0.1.example",
            "http://localhost.example", "http://0.0.0.0", "http://[::ffff:127.0.0.1]",
        ])
    func plainText(url: String) {
        let error = #expect(throws: NATSError.self) { _ = try NATSServerAddress(url) }
        let isAboutPlainText = if case .plainTextToNetwork = error { true } else { false }
        #expect(isAboutPlainText, "\(url): \(String(describing: error))")
    }

    @Test(
        "cannot have a password, a path or another scheme",
        arguments: [
            "https://user:secret@nats.example", "https://user@nats.example", "https://nats.example/a",
            "https://nats.example?a", "https://nats.example#a", "nats://127.0.0.1", "tls://nats.example",
            "nats.example",
            "", "https://", "https://nats.example:0", "https://nats.example:99999", "https://a b",
        ])
    func invalid(url: String) {
        let error = #expect(throws: NATSError.self) { _ = try NATSServerAddress(url) }
        let isAboutURL = if case .invalidServer = error { true } else { false }
        #expect(isAboutURL, "\(url): \(String(describing: error))")
        #expect(error?.description.contains("secret") == false)
    }

    @Test("libcurl's words about a proxy do not show its password")
    func proxy() {
        for (words, result) in [
            ("Unsupported proxy 'http://u:p@h:1', libcurl", "Unsupported proxy 'http://…@h:1', libcurl"),
            ("bad proxy 'u:p@@h'", "bad proxy '…@h'"), ("p@h", "…@h"), ("no route", "no route"),
        ] {
            #expect(Text.withoutUserInformation(words) == result)
        }
    }
}
