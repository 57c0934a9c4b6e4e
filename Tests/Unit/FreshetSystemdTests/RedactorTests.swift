import Logging
import Testing

@testable import FreshetSystemd

@Suite("A redactor")
struct RedactorTests {
    private let redactor = Redactor()

    init() { redactor.know(["tok/en+0123456789"]) }

    @Test(
        "takes a secret out wherever it stands, in whatever case, encoded or cut short",
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

    @Test("goes on with what stands in URLs")
    func urls() {
        #expect(redactor.text("GET https://a:b@c.example/tok/en+0123456789?x=1") == "GET https://c.example/***?…")
        #expect(Redactor().text("GET https://a:b@c.example/?x=1") == "GET https://c.example/?…")
    }

    @Test("does not look for what is shorter than eight bytes")
    func short() {
        redactor.know(["seven77", "eight888"])
        #expect(redactor.text("seven77 eight888") == "seven77 ***")
    }

    @Test("knows the secrets before for as long as they may be under way, and not for ever")
    func before() {
        redactor.know(["second-secret"])
        #expect(redactor.text("tok/en+0123456789 second-secret") == "*** ***")
        redactor.know(["third-secret"])
        #expect(redactor.text("tok/en+0123456789 second-secret third-secret") == "tok/en+0123456789 *** ***")
    }

    @Test("of secrets that begin alike takes the longest out")
    func alike() {
        redactor.know(["prefix-one", "prefix-one-and-more", "prefix-two"])
        #expect(redactor.text("prefix-one-and-more. prefix-two. prefix-one.") == "***. ***. ***.")
    }

    @Test("is heeded by the log in message and values")
    func log() {
        let event = LogEvent(
            level: .info, message: "said tok/en+0123456789", metadata: ["error": "tok/en+0123456789"], source: nil,
            file: "f", function: "g", line: 1)
        let record = LogRecord(event, label: "l", metadata: [:], provided: [:], redactor: redactor)
        #expect(record.message == "said ***")
        #expect(record.values.map(\.value) == ["***"])
    }
}
