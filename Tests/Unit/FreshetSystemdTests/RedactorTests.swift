import Logging
import Testing

@testable import FreshetSystemd

@Suite("A redactor")
struct RedactorTests {
    private let redactor = Redactor()

    init() { redactor.setSecrets(["tok/en+0123456789"]) }

    @Test(
        "removes a secret anywhere, in any case, encoded or truncated",
        arguments: [
            ("tok/en+0123456789", "***"),
            ("body tok/en+0123456789, and tok/en+0123456789", "body ***, and ***"),
            ("redirects to TOK/EN+0123456789.example", "redirects to ***.example"),
            ("/login/tok%2Fen%2B0123456789/x and %2f", "/login/***/x and %2f"),
            ("string (\"tok/en+0...) cannot be parsed", "string (\"***...) cannot be parsed"),
            ("tok/en+0tok/en+01234567890", "******0"),
            ("ättok/en+0123456789ö", "ät***ö"),
            ("tok/en+", "tok/en+"),
            ("nothing here", "nothing here"),
            ("", ""),
        ])
    func masks(_ text: String, _ shown: String) {
        #expect(redactor.text(text) == shown)
    }

    @Test("also redacts URLs")
    func urls() {
        #expect(redactor.text("GET https://a:b@c.example/tok/en+0123456789?x=1") == "GET https://c.example/***?x=…")
        #expect(Redactor().text("GET https://a:b@c.example/?x=1") == "GET https://c.example/?x=…")
    }

    @Test("ignores secrets shorter than eight bytes")
    func short() {
        redactor.setSecrets(["seven77", "eight888"])
        #expect(redactor.text("seven77 eight888") == "seven77 ***")
    }

    @Test("keeps the previous secrets for one more call, and not for ever")
    func before() {
        redactor.setSecrets(["second-secret"])
        #expect(redactor.text("tok/en+0123456789 second-secret") == "*** ***")
        redactor.setSecrets(["third-secret"])
        #expect(redactor.text("tok/en+0123456789 second-secret third-secret") == "tok/en+0123456789 *** ***")
    }

    @Test("removes both of two secrets that Swift compares as equal")
    func equivalent() {
        redactor.setSecrets(["caf\u{E9}-secret"], of: "file")
        redactor.setSecrets(["cafe\u{301}-secret"], of: "file")
        #expect(redactor.text("cafe\u{301}-secret caf\u{E9}-secret") == "*** ***")
    }

    @Test("removes the longest of secrets with the same beginning")
    func alike() {
        redactor.setSecrets(["prefix-one", "prefix-one-and-more", "prefix-two"])
        #expect(redactor.text("prefix-one-and-more. prefix-two. prefix-one.") == "***. ***. ***.")
    }

    @Test("is applied by the log to message and values")
    func log() {
        let event = LogEvent(
            level: .info, message: "said tok/en+0123456789", metadata: ["error": "tok/en+0123456789"], source: nil,
            file: "f", function: "g", line: 1)
        let record = LogRecord(event, label: "l", metadata: [:], provided: [:], redactor: redactor)
        #expect(record.message == "said ***")
        #expect(record.values.map(\.value) == ["***"])
    }
}
