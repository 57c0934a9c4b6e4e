import Testing

@testable import FreshetVarlink

@Suite("Stream-safe text")
struct StreamSafeTextTests {
    private func isSafe(_ text: String) -> Bool { StreamSafeText.isSafe(json: Array("{\"a\":\"\(text)\"}".utf8)) }

    @Test("has at most thirty combining characters in a row, written as they are or escaped")
    func limit() {
        for mark in ["\u{301}", #"\u0301"#, "\u{1D165}", #"\uD834\uDD65"#] {
            let most = String(repeating: mark, count: StreamSafeText.limit)
            #expect(isSafe("e" + most) && isSafe("e" + most + "e" + most))
            #expect(!isSafe("e" + most + mark) && !isSafe(most + mark + "e"))
        }
        #expect(!isSafe(String(repeating: #"\u0301\u0323"#, count: 16)))
    }

    @Test("the names of members must be stream-safe, also in replies")
    func names() {
        let marks = String(repeating: "\u{301}", count: 31)
        #expect(throws: VarlinkMessageError.syntax) {
            try VarlinkReplyMessage(parsing: Array("{\"a\(marks)\":1}".utf8))
        }
        #expect(throws: Never.self) { try VarlinkReplyMessage(parsing: Array("{\"a\":\"\(marks)\"}".utf8)) }
    }

    @Test("a call with an unsafe text is refused with the name of the member that has it")
    func calls() {
        let marks = String(repeating: "\u{301}", count: 31)
        for (message, field) in [
            (#"{"method":"a.B\#(marks)","parameters":{}}"#, "method"),
            (#"{"parameters":{"a":"\#(marks)"},"method":"a.B"}"#, "parameters"),
            (#"{"method":"a.B","parameters":{"\#(marks)":1}}"#, "parameters"),
            (#"{"method":"a.B","more":"\#(marks)"}"#, "more"),
        ] {
            #expect(throws: VarlinkMessageError.field(field)) { try VarlinkCallMessage(parsing: Array(message.utf8)) }
        }
        #expect(throws: VarlinkMessageError.syntax) {
            try VarlinkCallMessage(parsing: Array("{\"method\(marks)\":\"a.B\"}".utf8))
        }
    }

    @Test(
        "text of any language is safe, and so are escapes and values that are not text",
        arguments: [
            "Schlüssel – 漢字 한국어 ไทย हिन्दी", "e\u{301}", String(repeating: "😀👨‍👩‍👧", count: 50),
            String(repeating: #"\uD83D\uDE00"#, count: 50), String(repeating: #"\\u0301"#, count: 50), #"\"#, #"\u03"#,
        ])
    func languages(text: String) {
        #expect(isSafe(text))
    }

    @Test("the check of bytes that are not UTF-8 causes no trap")
    func invalid() {
        for bytes: [UInt8] in [
            [0xFF], [0xF0], [0xE2, 0x82], [0x80], [0x5C], [0x5C, 0x75, 0xFF, 0xFF, 0xFF, 0xFF], [],
        ] {
            #expect(StreamSafeText.isSafe(json: bytes))
        }
    }
}
