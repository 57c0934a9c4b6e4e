import FreshetRender
import Testing

private let second: Int64 = 1_000_000

@Suite struct ProgressBarTests {
    @Test(
        "a bar shows the fraction, and never exceeds its width",
        arguments: [
            (0, "[>       ]"), (0.5, "[====>   ]"), (0.999, "[=======>]"), (1, "[========]"), (7, "[========]"),
            (-1, "[>       ]"),
        ] as [(Double, String)])
    func bars(fraction: Double, expected: String) {
        #expect(ProgressBar.text(fraction, columns: 10) == expected)
    }

    @Test("a bar has a least width")
    func narrow() {
        #expect(ProgressBar.text(0.5, columns: 0) == "[>]")
    }
}

@Suite struct WrappedTextTests {
    @Test(
        "a text is wrapped at spaces, a longer word stays complete, and spaces within a line stay",
        arguments: [
            ("", []), ("one", ["one"]), ("one two", ["one two"]), ("one two three", ["one two", "three"]),
            ("a b c d e f", ["a b c d", "e f"]), ("a/very/long/path is", ["a/very/long/path", "is"]),
            ("is a/very/long/path", ["is", "a/very/long/path"]), ("a  b", ["a  b"]), (" a", [" a"]),
            ("abcdefg  x", ["abcdefg", "x"]),
            ("abcdefg ", ["abcdefg"]),
            ("漢字 漢字", ["漢字", "漢字"]), ("漢 漢字", ["漢 漢字"]),
        ] as [(String, [String])])
    func lines(text: String, expected: [String]) {
        #expect(WrappedText.lines(text, columns: 7) == expected)
    }
}

@Suite struct TimeTextTests {
    @Test(
        "distances in time have the format of systemctl",
        arguments: [
            (0, "now"), (-1, "now"), (999_999, "now"), (second, "in 1s"), (-second, "1s ago"),
            (-182 * second, "3min 2s ago"), (-180 * second, "3min ago"), (-3_600 * second, "1h ago"),
            (-7_500 * second, "2h 5min ago"), (-86_400 * second, "1 day ago"), (-100_000 * second, "1 day 3h ago"),
            (-8 * 86_400 * second, "1 week 1 day ago"), (-40 * 86_400 * second, "1 month 1 week ago"),
            (-400 * 86_400 * second, "1 year 1 month ago"), (720 * second, "in 12min"),
        ] as [(Int64, String)])
    func relative(distance: Int64, expected: String) {
        let now: Int64 = 1_800_000_000 * second
        #expect(TimeText.relative(now + distance, now: now) == expected)
    }

    @Test("extreme numbers are formatted without a trap")
    func extremes() {
        for instant in [Int64.min, -1, 0, .max] {
            for now in [Int64.min, 0, .max] { #expect(!TimeText.relative(instant, now: now).isEmpty) }
            #expect(!TimeText.absolute(instant).isEmpty)
            #expect(!TimeText.timeOfDay(instant).isEmpty)
            #expect(!TimeText.duration(instant).isEmpty)
            #expect(!SizeText.bytes(instant).isEmpty)
        }
    }

    @Test(
        "durations",
        arguments: [
            (0, "0 µs"), (999, "999 µs"), (1_000, "1 ms"), (85_400, "85 ms"), (999_999, "999 ms"),
            (second, "1.0 s"), (2_430_000, "2.4 s"), (59_999_999, "59.9 s"), (60 * second, "1min"),
            (182 * second, "3min 2s"), (-5, "0 µs"),
        ] as [(Int64, String)])
    func durations(duration: Int64, expected: String) {
        #expect(TimeText.duration(duration) == expected)
    }

    @Test(
        "dates",
        arguments: [
            (0, 0, "UTC", "Thu 1970-01-01 00:00:00 UTC"), (-1, 0, "UTC", "Wed 1969-12-31 23:59:59 UTC"),
            (951_782_400 * second, 0, "UTC", "Tue 2000-02-29 00:00:00 UTC"),
            (1_795_228_763 * second, 0, "UTC", "Sat 2026-11-21 02:39:23 UTC"),
            (1_795_228_763 * second, 3_600, "CET", "Sat 2026-11-21 03:39:23 CET"),
            (4_107_542_399 * second, 0, "UTC", "Sun 2100-02-28 23:59:59 UTC"),
            (4_107_542_400 * second, 0, "UTC", "Mon 2100-03-01 00:00:00 UTC"),
            (1_704_067_199 * second, -18_000, "EST", "Sun 2023-12-31 18:59:59 EST"),
        ] as [(Int64, Int64, String, String)])
    func absolute(instant: Int64, offset: Int64, zone: String, expected: String) {
        #expect(TimeText.absolute(instant, offset: offset, zone: zone) == expected)
    }

    @Test("times of day have milliseconds")
    func timeOfDay() {
        #expect(TimeText.timeOfDay(1_795_228_763_042_999) == "02:39:23.042")
        #expect(TimeText.timeOfDay(1_795_228_763_042_999, offset: -3 * 3_600) == "23:39:23.042")
    }
}

@Suite struct SizeTextTests {
    @Test(
        "sizes",
        arguments: [
            (0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_229, "1.2 KiB"), (10_239, "10 KiB"),
            (10_240, "10 KiB"), (1_048_575, "1 MiB"), (1_047_552, "1023 KiB"), (64 << 20, "64 MiB"),
            (Int64.max, "8 EiB"), (-1, "0 B"),
        ] as [(Int64, String)])
    func sizes(count: Int64, expected: String) {
        #expect(SizeText.bytes(count) == expected)
    }
}

@Suite struct DisplayTextTests {
    @Test(
        "width counts columns, not characters",
        arguments: [("", 0), ("abc", 3), ("äöü", 3), ("e\u{301}", 1), ("日本", 4), ("😀", 2), ("한글", 4), ("…", 1)])
    func width(text: String, expected: Int) {
        #expect(DisplayText.width(of: text) == expected)
    }

    @Test("a text is cut to a width, never within a character")
    func truncation() {
        #expect(DisplayText.truncated("abcdef", to: 6) == "abcdef")
        #expect(DisplayText.truncated("abcdef", to: 5) == "abcd…")
        #expect(DisplayText.truncated("日本語", to: 4) == "日…")
        #expect(DisplayText.truncated("abc", to: 1) == "…")
        #expect(DisplayText.truncated("abc", to: 0) == "")
    }

    @Test("control characters are escaped")
    func harmless() {
        #expect(DisplayText.harmless("eth0\u{1B}[2J\n\u{202E}x") == "eth0\\u{1b}[2J\\u{a}\\u{202e}x")
        #expect(DisplayText.harmless("a\u{61C}b\u{200F}") == "a\\u{61c}b\\u{200f}")
        #expect(DisplayText.harmless("änd 日本") == "änd 日本")
        #expect(DisplayText.harmlessLines("a\u{1B}[2J\r\n\tb\u{202E}\n") == "a\\u{1b}[2J\\u{d}\n\tb\\u{202e}\n")
    }
}

@Suite struct PaletteTests {
    @Test(
        "only terminals get colours, unless the environment decides otherwise",
        arguments: [
            ([:], true, true), ([:], false, false), (["NO_COLOR": "1"], true, false), (["NO_COLOR": ""], true, true),
            (["TERM": "dumb"], true, false), (["SYSTEMD_COLORS": "1", "NO_COLOR": "1"], false, true),
            (["SYSTEMD_COLORS": "no"], true, false), (["SYSTEMD_COLORS": "256"], false, true),
            (["SYSTEMD_COLORS": "auto"], true, true),
        ] as [([String: String], Bool, Bool)])
    func choice(environment: [String: String], isTerminal: Bool, expected: Bool) {
        #expect(Palette.choose(environment: environment, isTerminal: isTerminal).isColourful == expected)
    }

    @Test("without colours a text stays unchanged")
    func paint() {
        #expect(Palette(isColourful: false).paint("x", .bad) == "x")
        #expect(Palette(isColourful: true).paint("x", .bad) == "\u{1B}[0;1;31mx\u{1B}[0m")
        #expect(Palette(isColourful: true).paint("x", .plain) == "x")
    }
}

@Suite struct TableTests {
    private let table = Table(
        columns: [.init("NAME"), .init("SIZE", .right), .init("SOURCE", shrinksTo: 6)],
        rows: [
            ["jwks", "1.2 KiB", "https://id.example.com/jwks"],
            [Table.Cell("日本", .good), "64 MiB", ""],
        ])
    private let plain = Palette(isColourful: false)

    @Test("columns are aligned, and lines have no trailing spaces")
    func alignment() {
        #expect(
            table.lines(width: nil, legend: true, palette: plain) == [
                "NAME    SIZE SOURCE",
                "jwks 1.2 KiB https://id.example.com/jwks",
                "日本  64 MiB",
            ])
    }

    @Test("without a legend, titles take no width")
    func noLegend() {
        let table = Table(columns: [.init("LONG TITLE"), .init("B")], rows: [["a", "b"]])
        #expect(table.lines(width: nil, legend: false, palette: plain) == ["a b"])
    }

    @Test("on a narrow terminal columns shrink, down to their least width")
    func narrow() {
        #expect(table.lines(width: 24, legend: false, palette: plain).first == "jwks 1.2 KiB https://id…")
        #expect(table.lines(width: 5, legend: false, palette: plain).first == "jwks 1.2 KiB https…")
    }

    @Test("where shrinking is not enough, columns go, the least important first, and what is left fits")
    func leftOut() {
        let table = Table(
            columns: [
                .init("NAME", shrinksTo: 4), .init("SIZE", .right, goes: 2), .init("CHECKED"), .init("CAUSES", goes: 1),
            ],
            rows: [["homepage", "1.2 KiB", "3min ago", "network"], ["jwks", "9 B", "now", "timer"]])
        func shown(_ width: Int) -> [String] { table.lines(width: width, legend: true, palette: plain) }
        #expect(
            shown(33) == [
                "NAME        SIZE CHECKED  CAUSES", "homepage 1.2 KiB 3min ago network",
                "jwks         9 B now      timer",
            ])
        #expect(shown(28) == ["NAME     CHECKED  CAUSES", "homepage 3min ago network", "jwks     now      timer"])
        #expect(shown(20) == ["NAME     CHECKED", "homepage 3min ago", "jwks     now"])
        #expect(shown(13) == ["NAME CHECKED", "hom… 3min ago", "jwks now"])
        #expect(shown(11) == ["N… CHECKED", "h… 3min ago", "j… now"])
        #expect(table.lines(width: nil, legend: true, palette: plain) == shown(33))
    }

    @Test("a column that is to be so wide at least is, unless it has to give way, and nothing of it is cut then")
    func least() {
        var table = table
        table.columns[2].least = 30
        table.columns.append(.init("END"))
        for row in table.rows.indices { table.rows[row].append("x") }
        #expect(
            table.lines(width: 50, legend: false, palette: plain) == [
                "jwks 1.2 KiB https://id.example.com/jwks    x", "日本  64 MiB" + String(repeating: " ", count: 32) + "x",
            ])
        #expect(
            table.lines(width: 42, legend: false, palette: plain).first == "jwks 1.2 KiB https://id.example.com/jwks x")
    }

    @Test("colours do not count as width")
    func colours() {
        let lines = table.lines(width: nil, legend: false, palette: Palette(isColourful: true))
        #expect(lines.last == "\u{1B}[0;1;32m日本\u{1B}[0m  64 MiB")
    }
}
