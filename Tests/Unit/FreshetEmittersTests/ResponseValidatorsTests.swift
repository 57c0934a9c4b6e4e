import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Validators that detect later changes")
struct ResponseValidatorsTests {
    /// Sat, 01 Jan 2022 00:00:00 GMT
    static let saturday: Int64 = 1_640_995_200
    static let date = "Sat, 01 Jan 2022 00:00:00 GMT"
    static let after59Seconds = "Sat, 01 Jan 2022 00:00:59 GMT"
    static let after60Seconds = "Sat, 01 Jan 2022 00:01:00 GMT"

    private func usable(
        _ tag: String? = nil, modified: String? = date, date: String?, received: Int64? = nil
    ) -> Validators {
        // Without a time of receipt in the test, only the date of the response counts.
        let received = received ?? (date == nil ? .min : .max)
        return ResponseValidators(entityTag: tag, lastModified: modified, date: date).usable(received: received)
    }

    @Test("a Last-Modified is used if Date is at least a minute later")
    func dates() {
        #expect(usable(date: Self.date).isEmpty)
        #expect(usable(date: Self.after59Seconds).isEmpty)
        #expect(usable(date: Self.after60Seconds) == Validators(lastModified: Self.date))
        #expect(usable(date: "Fri, 31 Dec 2021 23:00:00 GMT").isEmpty)
        #expect(usable(date: "Fri, 01 Jan 2100 00:00:00 GMT").lastModified == Self.date)
    }

    @Test("without a valid Date the time of receipt counts", arguments: [nil, "", "soon", "1", "\u{e9}"])
    func receipt(_ date: String?) {
        #expect(usable(date: date, received: Self.saturday + 59).isEmpty)
        #expect(usable(date: date, received: Self.saturday + 60).lastModified == Self.date)
        #expect(usable(date: date, received: Self.saturday - 1_000_000).isEmpty)
        #expect(usable(date: date, received: .min).isEmpty && usable(date: date, received: .max).lastModified != nil)
    }

    @Test("a Date ahead of the local clock has no effect, and a Last-Modified in the future is not used")
    func future() {
        let hourAhead = "Sat, 01 Jan 2022 01:00:00 GMT"
        #expect(usable(date: hourAhead, received: Self.saturday + 59).isEmpty)
        #expect(usable("\"61cf9980-5\"", date: hourAhead, received: Self.saturday + 59).isEmpty)
        #expect(usable(date: hourAhead, received: Self.saturday + 60).lastModified == Self.date)
        let last = "Fri, 31 Dec 9998 23:59:59 GMT"
        #expect(usable(modified: last, date: "Fri, 31 Dec 9999 23:59:59 GMT", received: Self.saturday).isEmpty)
        #expect(usable("\"v1\"", modified: last, date: last, received: Self.saturday).entityTag == "\"v1\"")
    }

    @Test(
        "a value that is not one entity tag is not kept; the date beside it is kept",
        arguments: [
            "*", "W/*", "\"x\", *", "\"a\", \"b\"", "v1", "\"", "W/\"", "w/\"v1\"", "W/ \"v1\"", "\"a b\"", "\"a",
            "a\"",
            "", "\"\"\"", "\"a\tb\"", "\"v1\" ",
        ])
    func noTag(_ text: String) {
        #expect(usable(text, date: Self.after60Seconds) == Validators(lastModified: Self.date))
        #expect(usable(text, modified: nil, date: nil).isEmpty)
        #expect(ResponseValidators.sendable(Validators(entityTag: text), now: .max).isEmpty)
    }

    @Test("stored validators that are invalid or have a date in the future are not sent")
    func kept() {
        let kept = Validators(entityTag: "W/\"v1\"", lastModified: Self.date)
        #expect(ResponseValidators.sendable(kept, now: Self.saturday) == kept)
        #expect(ResponseValidators.sendable(kept, now: Self.saturday - 1) == Validators(entityTag: "W/\"v1\""))
        #expect(ResponseValidators.sendable(Validators(lastModified: "soon"), now: .max).isEmpty)
    }

    @Test("a 304 is for other content if its tag differs or, if a tag is missing, its date is later")
    func others() {
        func areOthers(_ tag: String?, _ date: String?, than requested: Validators) -> Bool {
            ResponseValidators(entityTag: tag, lastModified: date).areOthers(than: requested)
        }
        let tagged = Validators(entityTag: "\"a\"", lastModified: Self.date)
        let dated = Validators(lastModified: Self.date)
        #expect(areOthers("\"b\"", nil, than: tagged) && areOthers("*", nil, than: tagged))
        #expect(!areOthers("\"a\"", nil, than: tagged) && !areOthers("W/\"a\"", nil, than: tagged))
        #expect(!areOthers("\"a\"", Self.after60Seconds, than: tagged))
        #expect(!areOthers(nil, nil, than: tagged) && !areOthers(nil, Self.date, than: tagged))
        for requested in [tagged, dated] { #expect(areOthers(nil, Self.after60Seconds, than: requested)) }
        #expect(!areOthers("\"b\"", nil, than: dated) && !areOthers("\"b\"", Self.date, than: dated))
    }

    @Test("a Last-Modified that is not a date is not used; the entity tag beside it is used")
    func noDate() {
        for modified in ["", "yesterday", "Sat, 99 Jan 2022 00:00:00 GMT", "-1"] {
            #expect(
                usable("\"v1\"", modified: modified, date: Self.date) == Validators(entityTag: "\"v1\""))
            #expect(usable(modified: modified, date: Self.after60Seconds, received: .max).isEmpty, "\(modified)")
        }
    }

    @Test(
        "a tag made of the time is used only when the time is used",
        arguments: [
            // nginx, and compressed by nginx; in seconds, milliseconds, microseconds and nanoseconds.
            "\"61cf9980-5\"", "W/\"61cf9980-5\"", "\"61CF9980\"", "\"1640995200\"", "W/\"5-1640995200123\"",
            "W/\"5-17e12ef9c7b\"", "\"5-5d479f7f96007\"",
            "\"16c5fc70a61f0005-5\"",
        ])
    func madeOfTime(_ tag: String) {
        #expect(usable(tag, date: Self.date).isEmpty)
        #expect(usable(tag, date: Self.after60Seconds) == Validators(entityTag: tag, lastModified: Self.date))
        // Without Last-Modified, the tag cannot be compared with the time.
        #expect(usable(tag, modified: nil, date: Self.date) == Validators(entityTag: tag))
    }

    @Test(
        "any other tag, strong or weak, is used immediately, without the date",
        arguments: [
            "\"v1\"", "W/\"v1\"", "\"61cf9981-5\"", "\"d41d8cd98f00b204e9800998ecf8427e\"", "\"\"", "\"-\"",
            "\"99999999999999999999999999\"",
        ])
    func others(_ tag: String) {
        #expect(usable(tag, date: Self.date) == Validators(entityTag: tag))
        #expect(usable(tag, date: nil) == Validators(entityTag: tag))
        #expect(usable(tag, date: Self.after60Seconds) == Validators(entityTag: tag, lastModified: Self.date))
    }

    @Test("a tag that exceeds the length limit is not kept")
    func long() {
        let longest = "\"" + String(repeating: "x", count: ResponseValidators.longestTag - 2) + "\""
        #expect(usable(longest, date: nil) == Validators(entityTag: longest))
        #expect(usable("W/" + longest, date: nil).isEmpty)
        #expect(usable("W/" + longest, date: Self.after60Seconds) == Validators(lastModified: Self.date))
        #expect(usable(nil, date: String(repeating: " ", count: 100), received: Self.saturday + 59).isEmpty)
    }
}
