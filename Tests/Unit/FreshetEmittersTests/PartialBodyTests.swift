import Testing

@testable import FreshetEmitters

@Suite("Bodies whose rest can be requested")
struct PartialBodyTests {
    static let saturday = "Sat, 01 Jan 2022 00:00:00 GMT"
    static let minuteLater = "Sat, 01 Jan 2022 00:01:00 GMT"

    private func partial(
        status: Int = 200, tag: String? = nil, modified: String? = nil, date: String? = nil, encoding: String? = nil,
        ranges: String? = nil, total: UInt64? = 200_000, received: Int64? = .max
    ) -> PartialBody? {
        PartialBody(
            of: HTTPAnswer(
                status: status, host: "a.example", contentType: "text/plain", entityTag: tag, lastModified: modified,
                date: date, received: received, wasConditional: false),
            PartialBody.Fields(contentEncoding: encoding, acceptRanges: ranges), announced: total)
    }

    @Test("a strong entity tag, or a date that is older than the answer, identifies the body")
    func validators() {
        #expect(partial(tag: "\"v1\"")?.fields(from: 7) == ["Range: bytes=7-", "If-Range: \"v1\""])
        #expect(partial(tag: "\"v1\"", modified: Self.saturday)?.validator == "\"v1\"")
        #expect(partial(modified: Self.saturday, date: Self.minuteLater)?.validator == Self.saturday)
        // A body may have changed again within the same second, and a tag made of that second does not change then.
        #expect(partial(modified: Self.saturday, date: "Sat, 01 Jan 2022 00:00:01 GMT") == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday, date: Self.saturday) == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday, received: nil) == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday, date: Self.minuteLater) != nil)
        #expect(partial(modified: Self.saturday, date: Self.saturday) == nil)
        #expect(partial(modified: Self.saturday, received: nil) == nil)
        // The origin's clock may be ahead.
        #expect(partial(modified: Self.saturday, date: Self.minuteLater, received: 1_640_995_259) == nil)
        #expect(partial(modified: Self.saturday, date: Self.minuteLater, received: 1_640_995_260) != nil)
        #expect(partial(modified: "yesterday", date: Self.minuteLater) == nil)
        #expect(partial(tag: "W/\"v1\"") == nil)
        #expect(partial(tag: "W/\"v1\"", modified: Self.saturday, date: Self.minuteLater) == nil)
        #expect(partial(tag: "\"") == nil && partial(tag: "v1") == nil && partial() == nil)
    }

    @Test("the rest of a body is not requested with a content coding, without a length or without support for ranges")
    func unfit() {
        #expect(partial(tag: "\"v1\"", encoding: "gzip") == nil)
        #expect(partial(tag: "\"v1\"", total: nil) == nil)
        #expect(partial(tag: "\"v1\"", ranges: "None") == nil)
        #expect(partial(status: 203, tag: "\"v1\"") == nil)
        #expect(partial(tag: "\"v1\"", ranges: "bytes") != nil)
    }

    private func error(
        _ begun: PartialBody, _ ranges: [String], tag: String? = "\"v1\"", modified: String? = nil, type: String? = nil,
        encoding: String? = nil, length: UInt64? = nil
    ) -> String? {
        begun.error(
            in: PartialBody.Rest(
                contentRanges: ranges, entityTag: tag, lastModified: modified, contentType: type,
                contentEncoding: encoding, length: length), from: 100_000)
    }

    @Test("only a part that continues the same body at the right byte is accepted")
    func rest() throws {
        let begun = try #require(partial(tag: "\"v1\""))
        let range = "bytes 100000-199999/200000"
        for range in [range, "bytes 100000-199999/*", "bytes 100000-150000/200000"] {
            #expect(error(begun, [range]) == nil)
        }
        #expect(error(begun, [range], type: "text/plain", length: 100_000) == nil)
        #expect(error(begun, [range], tag: "\"v2\"")?.contains("another entity tag") == true)
        #expect(error(begun, [range], tag: "W/\"v1\"")?.contains("another entity tag") == true)
        #expect(error(begun, [range], tag: nil)?.contains("no entity tag") == true)
        #expect(error(begun, [range], encoding: "gzip")?.contains("compressed") == true)
        #expect(error(begun, [range], type: "text/html")?.contains("another Content-Type") == true)
        #expect(error(begun, [range], type: "Multipart/ByteRanges; boundary=x")?.contains("several parts") == true)
        for length: UInt64 in [0, 99_999, 100_001, .max] {
            #expect(error(begun, [range], length: length)?.contains("its length") == true)
        }
        #expect(error(begun, [])?.contains("no Content-Range") == true)
        for ranges in [[range, range], [range, "bytes 0-9/10"]] {
            #expect(error(begun, ranges)?.contains("several Content-Range") == true)
        }
        for range in [
            "bytes 0-199999/200000", "bytes 99999-199999/200000", "bytes 100001-199999/200000",
            "bytes 100000-200000/200001", "bytes 100000-199998/199999", "bytes 100000-200000/*",
            "bytes 100000-150000/*", "bytes 0-18446744073709551615/*",
        ] {
            #expect(error(begun, [range])?.contains("not the requested part") == true, "\(range)")
        }
        for range in [
            "", "bytes", "bytes */200000", "bytes 100000-/200000", "bytes -1/200000", "items 1-2/3", "bytes 2-1/3",
            "bytes 1-3/3", "bytes +1-2/3", "bytes 1-2", "bytes 1-2/3/4", "bytes 1-99999999999999999999/*",
        ] {
            #expect(error(begun, [range])?.contains("Content-Range is invalid") == true, "\(range)")
        }
    }

    @Test("a rest that was requested by a date must have exactly this date")
    func restByDate() throws {
        let begun = try #require(partial(modified: Self.saturday, date: Self.minuteLater))
        let range = ["bytes 100000-199999/200000"]
        #expect(error(begun, range, tag: nil, modified: Self.saturday) == nil)
        for date in [nil, Self.minuteLater, "Saturday, 01-Jan-22 00:00:00 GMT"] {
            #expect(error(begun, range, tag: nil, modified: date)?.contains("another Last-Modified") == true)
        }
    }

    @Test("a range with all bytes is the whole content")
    func whole() {
        #expect(ContentRange("bytes 0-9/10")?.isWhole == true)
        for part in ["bytes 0-8/10", "bytes 1-9/10", "bytes 0-9/*", "bytes 0-18446744073709551615/*"] {
            #expect(ContentRange(part)?.isWhole == false)
        }
    }
}
