import Testing

@testable import FreshetRender

@Suite struct CanvasTests {
    @Test("a canvas becomes lines without trailing spaces, with one sequence for each colour")
    func lines() {
        var canvas = TextCanvas(columns: 10)
        canvas.put("ab", row: 0, column: 0, .good)
        canvas.put("c", row: 0, column: 5, .good)
        canvas.put("d", row: 2, column: 1)
        #expect(canvas.lines(Palette(isColourful: false)) == ["ab   c", "", " d"])
        #expect(canvas.lines(Palette(isColourful: true)) == ["\u{1B}[0;1;32mab   c\u{1B}[0m", "", " d"])
    }

    @Test("nothing is drawn beyond the edges, and a wide character is drawn completely or not at all")
    func edges() {
        var canvas = TextCanvas(columns: 4)
        canvas.put("a漢漢", row: 0, column: 0)
        canvas.put("x", row: -1, column: 0)
        canvas.put("x", row: 0, column: -1)
        #expect(canvas.lines(Palette(isColourful: false)) == ["a漢"])
    }

    @Test("a combining mark stays at its letter, and an invisible character that does not combine is left out")
    func invisible() {
        var canvas = TextCanvas(columns: 9)
        canvas.put("\u{200B}a\u{301}\u{200B}b\u{FEFF}漢\u{301}\u{AD}c", row: 0, column: 0)
        #expect(canvas.lines(Palette(isColourful: false)) == ["a\u{301}b漢\u{301}c"])
    }
}

@Suite struct AxisTests {
    private let minute: Int64 = 60_000_000

    @Test("ticks are round in local time, and as many as fit")
    func ticks() {
        // 00:07 to 01:07 in a zone half an hour east.
        let axis = TimeAxis(from: 7 * minute, to: 67 * minute, most: 5) { _ in 1_800 }
        #expect(axis.step == 15 * minute)
        #expect(axis.ticks.map(\.label) == ["00:45", "01:00", "01:15", "01:30"])
    }

    /// Central Europe in 2026: summer from March 29, 01:00 UTC, to October 25, 01:00 UTC.
    private static func centralEurope(_ instant: Int64) -> Int64 {
        1_774_746_000_000_000 <= instant && instant < 1_792_890_000_000_000 ? 7_200 : 3_600
    }

    @Test(
        "ticks are round also after a change of the clocks",
        arguments: [
            // From 2026-03-28 00:00 by the clock.
            (1_774_652_400, 3 * 86_400, 3, ["Mar 28", "Mar 29", "Mar 30"]),
            (1_774_652_400 + 20 * 3_600, 12 * 3_600, 6, ["20:00", "22:00", "Mar 29", "04:00", "06:00", "08:00"]),
            (1_774_652_400 + 25 * 3_600 + 1_800, 4 * 3_600, 2, ["04:00", "06:00"]),
            // From 01:55 by the clock, five minutes before it is 03:00.
            (1_774_746_000 - 300, 3_600, 4, ["03:00", "03:15", "03:30", "03:45"]),
            // From 2026-10-24 00:00.
            (1_792_792_800, 3 * 86_400, 3, ["Oct 24", "Oct 25", "Oct 26"]),
            (1_792_792_800 + 22 * 3_600, 9 * 3_600, 5, ["22:00", "Oct 25", "02:00", "02:00", "04:00", "06:00"]),
            (1_792_792_800 + 26 * 3_600, 7_200, 4, ["02:00", "02:30", "02:00", "02:30", "03:00"]),
        ] as [(Int64, Int64, Int, [String])])
    func daylightSaving(first: Int64, length: Int64, most: Int, labels: [String]) {
        let axis = TimeAxis(
            from: first * 1_000_000, to: (first + length) * 1_000_000, most: most, offset: Self.centralEurope)
        #expect(axis.ticks.map(\.label).starts(with: labels), "\(axis.ticks.map(\.label))")
        #expect(zip(axis.ticks, axis.ticks.dropFirst()).allSatisfy { $0.at < $1.at })
        #expect(axis.ticks.allSatisfy { $0.at >= first * 1_000_000 })
    }

    @Test("midnight is labelled with the date, and short steps with seconds")
    func labels() {
        let day = 86_400_000_000 as Int64
        #expect(
            TimeAxis(from: 0, to: 3 * day, most: 4) { _ in 0 }.ticks.map(\.label) == [
                "Jan 1", "Jan 2", "Jan 3", "Jan 4",
            ])
        #expect(TimeAxis(from: minute, to: minute + 10_000_000, most: 3) { _ in 0 }.ticks.last?.label == "00:01:10")
        #expect(TimeAxis(from: minute, to: minute + 100_000, most: 3) { _ in 0 }.ticks.first?.label == "00:01:00.000")
    }

    @Test(
        "a picture begins at a round local time, not long before its first event",
        arguments: [
            (66 * 1_000_000, 10 * 1_000_000), (10 * 60_000_000, 60_000_000), (3_600_000_000, 600_000_000),
            (5_000_000, 500_000), (0, 1_000),
        ] as [(Int64, Int64)])
    func beginnings(length: Int64, step: Int64) {
        // 17:12:13.4567 by a clock that is half an hour before UTC's.
        let first: Int64 = (17 * 3_600 + 42 * 60 + 13) * 1_000_000 + 456_700
        let round = TimeAxis.round(first, before: first + length) { _ in -1_800 }
        #expect(round <= first && first - round < step && (round - 1_800_000_000) % step == 0)
    }

    @Test("any two instants have an axis", arguments: [(0, 0), (.min, .max), (-5, 5), (5, -5)] as [(Int64, Int64)])
    func extremes(first: Int64, last: Int64) {
        #expect(TimeAxis(from: first, to: last, most: 8) { _ in 0 }.ticks.count <= 10)
    }
}

@Suite struct CalendarTests {
    @Test("a date converts to its instant and back, for each day of 800 years")
    func dates() {
        for day in stride(from: Int64(-146_097), to: 146_097, by: 1) {
            let instant = day * 86_400_000_000
            let date = TimeText.date(of: instant)
            #expect(TimeText.instant(year: date.year, month: date.month, day: date.day, seconds: 0) == instant)
        }
    }

    @Test(
        "impossible days have no instant",
        arguments: [(2026, 2, 29), (1900, 2, 29), (2026, 4, 31), (2026, 0, 1)])
    func none(year: Int64, month: Int64, day: Int64) {
        #expect(TimeText.instant(year: year, month: month, day: day, seconds: 0) == nil)
    }

    @Test(
        "configured durations are exact",
        arguments: [
            (2_000_000, "2s"), (90_000_000, "1min 30s"), (500_000, "500ms"), (0, "0s"), (1_500_250, "1s 500ms 250us"),
            (86_400_000_000, "1 day"), (900_000_000, "15min"),
        ] as [(Int64, String)])
    func settings(microseconds: Int64, expected: String) {
        #expect(TimeText.setting(microseconds) == expected)
    }
}

@Suite struct SVGTests {
    @Test("special characters of XML are escaped, and impossible ones are spelled out")
    func escaped() {
        #expect(SVGWriter.escaped("a<b>&\"c\"\u{0}\u{FFFF}") == "a&lt;b&gt;&amp;&quot;c&quot;\\u{0}\\u{ffff}")
    }

    @Test(
        "numbers have two decimals at most",
        arguments: [(1, "1"), (1.5, "1.5"), (1.25, "1.25"), (-0.05, "-0.05"), (1e300, "1000000000"), (.nan, "0")])
    func numbers(value: Double, expected: String) {
        #expect(SVGWriter.number(value) == expected)
    }
}
