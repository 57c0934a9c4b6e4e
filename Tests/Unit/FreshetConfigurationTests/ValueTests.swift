import Testing

@testable import FreshetConfiguration

@Suite("Durations and sizes")
struct ValueTests {
    @Test(
        "durations are those of systemd.time(7)",
        arguments: [
            ("0", .zero), ("20", .seconds(20)), ("15min", .seconds(900)), ("1h 30s", .seconds(3630)),
            ("5m30", .seconds(330)), ("1.5h", .seconds(5400)), ("2 h", .seconds(7200)), (" 3s ", .seconds(3)),
            ("500ms", .milliseconds(500)), ("7us", .microseconds(7)), ("7µs", .microseconds(7)),
            ("1d", .seconds(86_400)), ("1w", .seconds(604_800)), ("1M", .seconds(2_629_800)),
            ("1y", .seconds(31_557_600)), ("100y", TimeSpan.longest), ("0.000000001s", .nanoseconds(1)),
            ("0.9999999999s", .nanoseconds(999_999_999)), ("1year 2months 3weeks", .seconds(38_631_600)),
        ] as [(String, Duration)])
    func durations(text: String, expected: Duration) throws {
        #expect(try TimeSpan.read(text) == expected)
    }

    @Test(
        "an invalid duration is an error",
        arguments: [
            "", " ", "min", "1.", ".5s", "-1s", "+1s", "1e3", "0x10", "1,5s", "1 minute ago", "١s", "100y 1us",
            "9223372036854775807y", "18446744073709551616", "1s;", "1..5s",
        ])
    func wrongDurations(text: String) {
        #expect(throws: ValueError.self) { try TimeSpan.read(text) }
    }

    @Test("a duration's text is read as the same duration")
    func roundTrip() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<1000 {
            let bits = Int64.random(in: 0...50, using: &random)
            let duration: Duration = .microseconds(Int64.random(in: 0...(1 << bits), using: &random))
            #expect(try TimeSpan.read(TimeSpan.text(duration)) == duration)
        }
        #expect(TimeSpan.text(.seconds(5430)) == "1h 30min 30s")
    }

    @Test(
        "sizes have IEC units",
        arguments: [
            ("0", 0), ("1500", 1500), ("64B", 64), ("64K", 65_536), ("64k", nil), ("64 M", 64 << 20), ("1GiB", 1 << 30),
            ("1.5K", 1536), ("7E", 7 << 60), ("8E", nil), ("1KB", nil), ("1.5", nil), ("", nil), ("-1", nil),
            ("M", nil), ("1M 1K", nil), ("9223372036854775807", UInt64(Int64.max)), ("9223372036854775808", nil),
        ] as [(String, UInt64?)])
    func sizes(text: String, expected: UInt64?) {
        #expect((try? ByteSize.read(text)) == expected)
        if let expected { #expect((try? ByteSize.read(ByteSize.text(expected))) == expected) }
    }
}
