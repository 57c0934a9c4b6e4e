import FreshetModel
import Glibc
import Testing

@Suite("Calendar times")
struct CalendarEventTests {
    /// A time zone of this machine.
    static func zone(_ name: String) throws -> TimeZoneRules {
        guard name != "UTC" else { return .utc }
        let file = try #require(fopen("/usr/share/zoneinfo/\(name)", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: TimeZoneRules.maximumSize)
        let count = fread(&bytes, 1, bytes.count, file)
        return try #require(TimeZoneRules(Array(bytes.prefix(count)), name: name))
    }

    /// The next times in seconds since 1970.
    static func times(_ text: String, after base: Int64, in zone: TimeZoneRules, count: Int = 5) throws -> [Int64] {
        let event = try CalendarEvent(text)
        var times: [Int64] = []
        var last = WallTime(seconds: base)
        while times.count < count, let next = event.next(after: last, in: zone) {
            times.append(next.microseconds / 1_000_000)
            last = next
        }
        return times
    }

    @Test(
        "the next time, in a time zone",
        arguments: [
            // 2026-03-27 00:00 UTC, a Friday.
            ("daily", "UTC", 1_774_569_600, [1_774_656_000, 1_774_742_400]),
            ("hourly", "UTC", 1_774_569_600, [1_774_573_200, 1_774_576_800]),
            ("weekly", "UTC", 1_774_569_600, [1_774_828_800, 1_775_433_600]),
            ("monthly", "UTC", 1_774_569_600, [1_775_001_600, 1_777_593_600]),
            ("Mon..Fri 06:30", "UTC", 1_774_569_600, [1_774_593_000, 1_774_852_200]),
            ("*:0/15", "UTC", 1_774_569_600, [1_774_570_500, 1_774_571_400]),
            ("*-*~1 12:00", "UTC", 1_774_569_600, [1_774_958_400, 1_777_550_400]),
            ("Mon *-05~07/1", "UTC", 1_774_569_600, [1_779_667_200, 1_811_721_600]),
            ("*-02-29", "UTC", 1_774_569_600, [1_835_395_200, 1_961_625_600]),
            ("2003-03-05 05:40", "UTC", 1_774_569_600, []),
            // 02:30 is skipped on 29 March in Berlin.
            ("02:30", "Europe/Berlin", 1_774_569_600, [1_774_575_000, 1_774_661_400, 1_774_830_600]),
            // 25 October 2026: 02:30 occurs twice, and the first counts. The zone in the text comes first.
            ("02:30", "Europe/Berlin", 1_792_800_000, [1_792_801_800, 1_792_888_200, 1_792_978_200]),
            ("*:0/30", "Europe/Berlin", 1_792_886_400, [1_792_888_200, 1_792_893_600, 1_792_895_400]),
            // From the second time on.
            ("*:0/30", "Europe/Berlin", 1_792_890_600, [1_792_891_800, 1_792_893_600]),
            ("03:00", "America/New_York", 1_774_569_600, [1_774_594_800, 1_774_681_200]),
        ] as [(String, String, Int64, [Int64])])
    func next(text: String, zone: String, base: Int64, expected: [Int64]) throws {
        let found = try Self.times(text, after: base, in: try Self.zone(zone), count: max(expected.count, 1))
        #expect(found == expected)
    }

    @Test("a time zone in the text is kept, and the rest is read without it")
    func zoneInText() throws {
        #expect(try CalendarEvent("daily Europe/Berlin").zone == "Europe/Berlin")
        #expect(try CalendarEvent("Mon 06:30 utc").zone == "UTC")
        #expect(try CalendarEvent("Mon 06:30").zone == nil)
        #expect(try CalendarEvent("Mon").zone == nil)
    }

    @Test(
        "anything else is an error",
        arguments: [
            "", " ", "foo", "25:00", "Mon..", "Fri..Mon", "*-13-01", "*-02-32", "12:60", "1:2:60", "*-*-*-*",
            "0 3 * * *",
            "*:0/0", "5..3:00", "2200-01-01", "1969-01-01", "*-*~29", "Mon,Foo 10:00", "12", "-1:00", "*:*:*:*",
            "\u{2003}daily", "*-*-* 99999999999999999999:00",
        ])
    func invalid(text: String) {
        #expect(throws: CalendarEvent.ParseError.self) { _ = try CalendarEvent(text) }
    }

    @Test("cron's notation is an error that says so")
    func cron() {
        do throws(CalendarEvent.ParseError) {
            _ = try CalendarEvent("0 3 * * 1-5")
            Issue.record("it is accepted")
        } catch {
            #expect(error.remedy.contains("cron"))
        }
    }

    @Test("an event that never comes ends after a bounded search")
    func never() throws {
        let event = try CalendarEvent("*-02-30")
        #expect(event.next(after: WallTime(seconds: 0), in: .utc) == nil)
        #expect(event.next(after: WallTime(nanoseconds: .max), in: .utc) == nil)
    }

    @Test("a time zone file that is damaged in any byte is read or refused")
    func damaged() throws {
        let file = try #require(fopen("/usr/share/zoneinfo/Europe/Berlin", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: TimeZoneRules.maximumSize)
        bytes = Array(bytes.prefix(fread(&bytes, 1, bytes.count, file)))
        for length in stride(from: 0, to: bytes.count, by: 7) {
            #expect(TimeZoneRules(Array(bytes.prefix(length)), name: "x") == nil)
        }
        let event = try CalendarEvent("*-*-* 02:30")
        for index in bytes.indices where index < 60 || index > bytes.count - 60 || index.isMultiple(of: 5) {
            for bit in [0x01, 0x80] as [UInt8] {
                var damaged = bytes
                damaged[index] ^= bit
                guard let zone = TimeZoneRules(damaged, name: "x") else { continue }
                _ = event.next(after: WallTime(seconds: 1_774_569_600), in: zone)
            }
        }
    }

    // MARK: systemd

    private static let isSystemdHere = access("/usr/bin/systemd-analyze", X_OK) == 0

    /// Expressions that systemd reads too.
    private static let expressions = [
        "minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly", "Mon..Fri 06:30",
        "Sat,Thu,Mon..Wed,Sat..Sun", "Mon,Sun 12..40-*-* 2,1:23", "Wed *-1", "Wed, 17:48", "*-*-7 0:0:0", "10-15",
        "monday *-12-* 17:00", "Mon,Fri *-*-3,1,2 *:30:45", "12,14,13:20,10,30", "12..14:10,20,30",
        "mon,fri *-1/2-1,3 *:30:45", "03-05 08:05:40", "05:40", "*:2/3", "*:0/15", "*-02~03", "Mon *-05~07/1", "*-*~1",
        "*-*~01..03", "*-*-* 02:30", "*-*-* 02..03:30", "*:*:0/10", "*-02-29", "2024/4-02-29", "*-*-31",
        "*-04..06-31", "Fri *-*-13", "hourly UTC", "daily America/New_York", "*-*-1..7/3 00/6:00", "Sun *-*-* 01:00",
        "*:0/7:3/20", "00:00", "23..23:00", "*-*~28/1", "Sun *-10~07/1 02:30", "Sun *-03~07/1 *:*",
    ]

    @Test(
        "times are those of 'systemd-analyze calendar'", .enabled(if: isSystemdHere),
        arguments: ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "America/Sao_Paulo"],
        // Two random instants, and the evenings before changes of daylight saving.
        [1_600_123_457, 1_774_700_123, 1_792_840_500, 1_793_480_321, 1_900_000_000] as [Int64])
    func systemd(zone: String, base: Int64) throws {
        let rules = try Self.zone(zone)
        let texts = Self.expressions.map { "'\($0)'" }.joined(separator: " ")
        let command = "TZ=\(zone) LC_ALL=C systemd-analyze calendar --iterations=5 --base-time=@\(base) \(texts)"
        let pipe = try #require(popen(command, "r"))
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, pipe), count > 0 { output += buffer.prefix(count) }
        #expect(pclose(pipe) == 0)
        let sections = Self.sections(of: String(decoding: output, as: UTF8.self))
        try #require(sections.count == Self.expressions.count)
        for (text, section) in zip(Self.expressions, sections) {
            let own = try CalendarEvent(text).zone.map { try Self.zone($0) }
            #expect(try Self.times(text, after: base, in: own ?? rules) == section, "\(text)")
        }
    }

    /// The times of each expression in the output.
    private static func sections(of output: String) -> [[Int64]] {
        output.split(separator: "Normalized form:").dropFirst().map { section in
            let lines = section.split(separator: "\n")
            let universal = lines.filter { $0.contains("(in UTC):") }
            // Without these lines, the local time zone is UTC.
            let chosen = universal.isEmpty ? lines.filter { $0.contains("elapse:") || $0.contains("Iter.") } : universal
            return chosen.compactMap(seconds)
        }
    }

    /// `… Sat 2026-10-24 23:45:00 UTC` as seconds since 1970.
    private static func seconds(_ line: Substring) -> Int64? {
        let words = line.split(separator: " ").suffix(4).map(String.init)
        guard words.count == 4, words[3] == "UTC" else { return nil }
        let date = words[1].split(separator: "-").compactMap { Int32($0) }
        let time = words[2].split(separator: ":").compactMap { Int32($0) }
        guard date.count == 3, time.count == 3 else { return nil }
        var broken = tm()
        (broken.tm_year, broken.tm_mon, broken.tm_mday) = (date[0] - 1900, date[1] - 1, date[2])
        (broken.tm_hour, broken.tm_min, broken.tm_sec) = (time[0], time[1], time[2])
        return Int64(timegm(&broken))
    }
}
