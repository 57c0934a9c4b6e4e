import Testing

@testable import FreshetCommands

@Suite struct InstantTests {
    /// 2026-11-21 02:39:23 UTC, a Saturday.
    private let now = Scenario.now

    @Test(
        "times have the syntax of systemd.time(7); the zone is two hours east of UTC",
        arguments: [
            ("now", "Sat 2026-11-21 02:39:23"), ("-1h", "Sat 2026-11-21 01:39:23"),
            ("- 1h 30min", "Sat 2026-11-21 01:09:23"),
            ("2 hours ago", "Sat 2026-11-21 00:39:23"), ("+5min", "Sat 2026-11-21 02:44:23"),
            ("1 day left", "Sun 2026-11-22 02:39:23"), ("90 ago", "Sat 2026-11-21 02:37:53"),
            ("today", "Fri 2026-11-20 22:00:00"), ("yesterday", "Thu 2026-11-19 22:00:00"),
            ("tomorrow", "Sat 2026-11-21 22:00:00"), ("09:30", "Sat 2026-11-21 07:30:00"),
            ("2026-11-20", "Thu 2026-11-19 22:00:00"), ("2026-11-20 09:30", "Fri 2026-11-20 07:30:00"),
            ("2026-11-20 09:30:15.5 UTC", "Fri 2026-11-20 09:30:15"), ("26-11-20", "Thu 2026-11-19 22:00:00"),
            ("Sat 2026-11-21 02:39:23 UTC", "Sat 2026-11-21 02:39:23"),
            ("2026-11-21T02:39:23Z", "Sat 2026-11-21 02:39:23"),
            ("@1795228763", "Sat 2026-11-21 02:39:23"), ("2024-02-29 00:00 UTC", "Thu 2024-02-29 00:00:00"),
        ])
    func instants(text: String, expected: String) throws {
        let instant = try #require(Instant(argument: text), "\(text)")
        let resolved = instant.resolved(now: now) { _ in (7_200, "EET") }
        #expect(Scenario.times.absolute(resolved) == expected + " UTC", "\(text)")
    }

    @Test("near a change of the clocks, the offset is that of the result")
    func changeOfClocks() {
        // 01:00 UTC: from two hours to one.
        let change: Int64 = 1_793_494_800_000_000
        let zone: (Int64) -> (offset: Int64, name: String) = { $0 < change ? (7_200, "A") : (3_600, "B") }
        let before = Instant(argument: "2026-11-01 01:30")?.resolved(now: now, timeZone: zone)
        let after = Instant(argument: "2026-11-01 03:30")?.resolved(now: now, timeZone: zone)
        #expect(before == change - 5_400_000_000 && after == change + 5_400_000_000)
    }

    @Test(
        "an invalid time is rejected",
        arguments: [
            "", "soon", "-", "-1 fortnight", "25:00", "12:60", "2026-13-01", "2026-02-29", "2026-11-20 09:30 CEST", "@",
            "@x", "1h",
            "infinity ago", "2026-11-20 09:30 10:00", "99999999999999999999d ago",
        ])
    func noInstants(text: String) {
        #expect(Instant(argument: text) == nil)
    }
}
