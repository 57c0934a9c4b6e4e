import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("The meaning of answers")
struct HTTPAnswerTests {
    /// Thu, 01 Jan 1970 00:16:40 GMT
    let now: Int64 = 1_000

    @Test(
        "Retry-After is seconds or a date, not negative, and at most a week",
        arguments: [
            ("120", Duration.seconds(120)), ("0", .zero), (" 5 ", .seconds(5)),
            ("604800", RetryAfter.longest), ("604801", RetryAfter.longest),
            ("99999999999999999999999", RetryAfter.longest),
            ("Thu, 01 Jan 1970 00:17:40 GMT", .seconds(60)), ("Thu, 01 Jan 1970 00:16:39 GMT", .zero),
            ("Thu Jan  1 00:17:40 1970", .seconds(60)),
            ("Fri, 01 Jan 2100 00:00:00 GMT", RetryAfter.longest),
        ])
    func retryAfter(_ field: String, _ expected: Duration) {
        #expect(RetryAfter.parse(field, now: now) == expected)
    }

    @Test("an invalid Retry-After is ignored", arguments: ["", "soon", "-5", "1.5", "5s", "6 0"])
    func noRetryAfter(_ field: String) {
        #expect(RetryAfter.parse(field, now: now) == nil)
    }

    @Test("a media type has no parameters and is in lower case")
    func mediaType() {
        for (field, type) in [
            ("Text/HTML; charset=utf-8", "text/html"), (" application/json ", "application/json"), (";", nil),
            ("", nil),
        ] as [(String, String?)] {
            #expect(answer(200, contentType: field).mediaType == type)
        }
        #expect(answer(200).mediaType == nil)
    }

    @Test("every status has a meaning")
    func meanings() {
        for status in 100..<1_000 {
            let meaning = answer(status).meaning(now: now)
            let isFailure = if case .failure = meaning { true } else { false }
            #expect(HTTPAnswer.isUsual(status, wasConditional: true) == !isFailure)
            switch status {
            case 200..<300 where status != 202 && status != 206: #expect(meaning == .content)
            case 304: #expect(meaning == .notModified)
            default:
                guard case .failure(let failure) = meaning else {
                    Issue.record("\(status): \(meaning)")
                    continue
                }
                #expect(failure.message.contains("\(status)"))
            }
        }
    }

    private func answer(_ status: Int, contentType: String? = nil) -> HTTPAnswer {
        HTTPAnswer(status: status, host: "example.com", contentType: contentType, wasConditional: true)
    }
}

@Suite("Text in messages")
struct TextTests {
    @Test(
        "numbers have separated thousands",
        arguments: [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")])
    func grouped(_ number: UInt64, _ text: String) {
        #expect(Text.grouped(number) == text)
    }

    @Test("durations are in whole seconds, rounded up")
    func seconds() {
        #expect(Text.seconds(.seconds(10)) == "10 s")
        #expect(Text.seconds(.milliseconds(1_001)) == "2 s")
    }

    @Test("control characters and changes of direction are escaped; letters of all languages are not")
    func escaped() {
        #expect(Text.escaped("a\u{1B}[2Jb\n\u{202E}é") == "a\\u{1b}[2Jb\\u{a}\\u{202e}é")
        #expect(Text.escaped([0xFF, 0x41]) == "\u{FFFD}A")
    }
}
