import Testing

@testable import FreshetEmitters

@Suite("Bodies whose rest can be asked for")
struct PartialBodyTests {
    static let saturday = "Sat, 01 Jan 2022 00:00:00 GMT"
    static let minuteLater = "Sat, 01 Jan 2022 00:01:00 GMT"

    private func partial(
        status: Int = 200, tag: String? = nil, modified: String? = nil, date: String? = nil, encoding: String? = nil,
        ranges: String? = nil, total: UInt64? = 200_000
    ) -> PartialBody? {
        PartialBody(
            of: HTTPAnswer(
                status: status, host: "a.example", entityTag: tag, lastModified: modified, date: date,
                wasConditional: false),
            PartialBody.Fields(contentEncoding: encoding, acceptRanges: ranges), announced: total)
    }

    @Test("a strong entity tag ties the rest to the beginning, or a date that is older than the answer")
    func validators() {
        #expect(partial(tag: "\"v1\"")?.fields(from: 7) == ["Range: bytes=7-", "If-Range: \"v1\""])
        #expect(partial(tag: "\"v1\"", modified: Self.saturday)?.validator == "\"v1\"")
        #expect(partial(modified: Self.saturday, date: Self.minuteLater)?.validator == Self.saturday)
        // Within its own second a body may have changed again, and a tag made of that second does not show it.
        #expect(partial(modified: Self.saturday, date: "Sat, 01 Jan 2022 00:00:01 GMT") == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday, date: Self.saturday) == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday) == nil)
        #expect(partial(tag: "\"61cf9980-5\"", modified: Self.saturday, date: Self.minuteLater) != nil)
        #expect(partial(modified: Self.saturday, date: Self.saturday) == nil)
        #expect(partial(modified: Self.saturday) == nil)
        #expect(partial(modified: "yesterday", date: Self.minuteLater) == nil)
        #expect(partial(tag: "W/\"v1\"") == nil)
        #expect(partial(tag: "W/\"v1\"", modified: Self.saturday, date: Self.minuteLater) == nil)
        #expect(partial(tag: "\"") == nil && partial(tag: "v1") == nil && partial() == nil)
    }

    @Test("nothing is asked for of a coded body, one without a length, or where the origin serves no ranges")
    func unfit() {
        #expect(partial(tag: "\"v1\"", encoding: "gzip") == nil)
        #expect(partial(tag: "\"v1\"", total: nil) == nil)
        #expect(partial(tag: "\"v1\"", ranges: "None") == nil)
        #expect(partial(status: 203, tag: "\"v1\"") == nil)
        #expect(partial(tag: "\"v1\"", ranges: "bytes") != nil)
    }

    @Test("what continues at the right byte of the same body is taken, and nothing else")
    func rest() throws {
        let begun = try #require(partial(tag: "\"v1\""))
        func fault(_ range: String?, tag: String? = nil, encoding: String? = nil) -> String? {
            begun.fault(inContentRange: range, entityTag: tag, contentEncoding: encoding, from: 100_000)
        }
        for range in ["bytes 100000-199999/200000", "bytes 100000-199999/*", "bytes 100000-150000/200000"] {
            #expect(fault(range) == nil)
        }
        #expect(fault("bytes 100000-199999/200000", tag: "\"v1\"") == nil)
        #expect(fault("bytes 100000-199999/200000", tag: "\"v2\"")?.contains("entity tag") == true)
        #expect(fault("bytes 100000-199999/200000", encoding: "gzip")?.contains("compressed") == true)
        #expect(fault(nil)?.contains("which part") == true)
        for range in [
            "bytes 0-199999/200000", "bytes 99999-199999/200000", "bytes 100001-199999/200000",
            "bytes 100000-200000/200001", "bytes 100000-199998/199999", "bytes 100000-200000/*",
        ] {
            #expect(fault(range)?.contains("another part") == true, "\(range)")
        }
        for range in [
            "", "bytes", "bytes */200000", "bytes 100000-/200000", "bytes -1/200000", "items 1-2/3", "bytes 2-1/3",
            "bytes 1-3/3", "bytes +1-2/3", "bytes 1-2", "bytes 1-2/3/4", "bytes 1-99999999999999999999/*",
        ] {
            #expect(fault(range)?.contains("makes no sense") == true, "\(range)")
        }
    }
}
