import FreshetModel
import Testing

@testable import FreshetFleet

@Suite("The times of NATS") struct TimestampTests {
    @Test(
        "a time is read with and without a fraction",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-11-26T19:27:01Z", 1_795_721_221_000_000_000),
            ("2026-11-26T19:27:01.5Z", 1_795_721_221_500_000_000),
            ("2026-11-26T19:27:01.123456789Z", 1_795_721_221_123_456_789),
            ("2024-02-29T23:59:59.000000001Z", 1_709_251_199_000_000_001),
        ] as [(String, Int64)])
    func valid(text: String, nanoseconds: Int64) throws {
        // A wall time is advanced by whole microseconds.
        #expect(try #require(Timestamp.parse(text)).microseconds == nanoseconds / 1_000)
    }

    @Test(
        "other texts are not a time",
        arguments: [
            "", "Z", "2026-11-26T19:27:01", "2026-11-26T19:27:01.Z", "2026-11-26T19:27:01.1234567890Z",
            "2026-11-26 19:27:01Z", "2026-11-26T19:27:01+01:00", "-026-11-26T19:27:01Z", "2026-11-26T19:27:0aZ",
            "2026-11-26T19:27:01.12a4Z", "２０２６-11-26T19:27Z",
        ])
    func invalid(text: String) { #expect(Timestamp.parse(text) == nil) }
}
