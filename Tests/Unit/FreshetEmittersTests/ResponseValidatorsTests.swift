import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Validators that show a later change, and those that may not")
struct ResponseValidatorsTests {
    /// Sat, 01 Jan 2022 00:00:00 GMT
    static let saturday: Int64 = 1_640_995_200
    static let date = "Sat, 01 Jan 2022 00:00:00 GMT"
    static let after59Seconds = "Sat, 01 Jan 2022 00:00:59 GMT"
    static let after60Seconds = "Sat, 01 Jan 2022 00:01:00 GMT"

    private func usable(
        _ tag: String? = nil, modified: String? = date, date: String?, received: Int64? = nil
    ) -> Validators {
        ResponseValidators(entityTag: tag, lastModified: modified, date: date).usable(received: received)
    }

    @Test("a Last-Modified is used once Date is a minute later")
    func dates() {
        #expect(usable(date: Self.date).isEmpty)
        #expect(usable(date: Self.after59Seconds).isEmpty)
        #expect(usable(date: Self.after60Seconds) == Validators(lastModified: Self.date))
        #expect(usable(date: "Fri, 31 Dec 2021 23:00:00 GMT").isEmpty)
        #expect(usable(date: "Fri, 01 Jan 2100 00:00:00 GMT").lastModified == Self.date)
    }

    @Test("without a Date that can be read the time of receipt counts", arguments: [nil, "", "soon", "1", "\u{e9}"])
    func receipt(_ date: String?) {
        #expect(usable(date: date, received: Self.saturday + 59).isEmpty)
        #expect(usable(date: date, received: Self.saturday + 60).lastModified == Self.date)
        #expect(usable(date: date, received: Self.saturday - 1_000_000).isEmpty)
        #expect(usable(date: date, received: .min).isEmpty && usable(date: date, received: .max).lastModified != nil)
        #expect(usable(date: date).isEmpty)
    }

    @Test("a Last-Modified that is no date is not used, and an entity tag beside it is")
    func noDate() {
        for modified in ["", "yesterday", "Sat, 99 Jan 2022 00:00:00 GMT", "-1"] {
            #expect(
                usable("\"v1\"", modified: modified, date: Self.date, received: 0) == Validators(entityTag: "\"v1\""))
            #expect(usable(modified: modified, date: Self.after60Seconds, received: .max).isEmpty, "\(modified)")
        }
    }

    @Test(
        "a tag made of the time is as good as the time",
        arguments: [
            // nginx, and compressed by nginx; in seconds, milliseconds, microseconds and nanoseconds.
            "\"61cf9980-5\"", "W/\"61cf9980-5\"", "\"61CF9980\"", "\"1640995200\"", "W/\"5-1640995200123\"",
            "W/\"5-17e12ef9c7b\"", "\"5-5d479f7f96007\"",
            "\"16c5fc70a61f0005-5\"",
        ])
    func madeOfTime(_ tag: String) {
        #expect(usable(tag, date: Self.date).isEmpty)
        #expect(usable(tag, date: Self.after60Seconds) == Validators(entityTag: tag, lastModified: Self.date))
        // Without the time beside it nothing shows what it is made of.
        #expect(usable(tag, modified: nil, date: Self.date) == Validators(entityTag: tag))
    }

    @Test(
        "another tag is used at once, strong or weak, without the date",
        arguments: [
            "\"v1\"", "W/\"v1\"", "\"61cf9981-5\"", "\"d41d8cd98f00b204e9800998ecf8427e\"", "\"\"", "\"-\"",
            "\"99999999999999999999999999\"",
        ])
    func others(_ tag: String) {
        #expect(usable(tag, date: Self.date) == Validators(entityTag: tag))
        #expect(usable(tag, date: nil) == Validators(entityTag: tag))
        #expect(usable(tag, date: Self.after60Seconds) == Validators(entityTag: tag, lastModified: Self.date))
    }

    @Test("a tag that is longer than any server's is not kept")
    func long() {
        let longest = "\"" + String(repeating: "x", count: ResponseValidators.longestTag - 2) + "\""
        #expect(usable(longest, date: nil) == Validators(entityTag: longest))
        #expect(usable("x" + longest, date: nil).isEmpty)
        #expect(usable("x" + longest, date: Self.after60Seconds) == Validators(lastModified: Self.date))
        #expect(usable(nil, date: String(repeating: " ", count: 100)).isEmpty)
    }
}
