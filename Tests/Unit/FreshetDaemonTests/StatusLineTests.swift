import FreshetControl
import Testing

@testable import FreshetDaemon

@Suite("The status line")
struct StatusLineTests {
    /// 2026-11-21 12:00:00 UTC.
    private static let noon: Int64 = 1_795_262_400_000_000
    private static let hour: Int64 = 3_600_000_000

    private func text(_ line: StatusLine, offset: Int64 = 0) -> String { line.text(now: Self.noon, offset: offset) }

    @Test("says how many pipelines there are, how they are, the network, and what comes next")
    func sound() {
        var line = StatusLine()
        line.network = "via 192.0.2.1 on wan0"
        #expect(text(line) == "0 pipelines; network via 192.0.2.1 on wan0")
        line.counts = PipelineCounts([.loaded])
        line.next = ("flags", Self.noon + Self.hour / 4)
        #expect(text(line) == "1 pipeline: 1 loaded; network via 192.0.2.1 on wan0; next refresh 12:15 (flags)")
        line.counts = PipelineCounts([.loaded, .loaded, .loading, .waiting, .idle, .held])
        #expect(text(line).hasPrefix("6 pipelines: 2 loaded, 1 loading, 1 waiting, 1 idle, 1 held; network"))
    }

    @Test("names what fails, why and since when")
    func failed() {
        var line = StatusLine()
        line.counts = PipelineCounts([.loaded, .failed])
        line.add("jwks") { ("example.com answered 404 Not Found", Self.noon - Self.hour) }
        #expect(
            text(line).hasPrefix(
                "2 pipelines: 1 loaded, 1 failed (jwks: example.com answered 404 Not Found, since 11:00); network"))
    }

    @Test("names the copies that are past their max-age")
    func expired() {
        var line = StatusLine()
        line.counts = PipelineCounts([.loaded])
        line.expired = ["jwks"]
        #expect(text(line) == "1 pipeline: 1 loaded; 1 expired (jwks); network not known")
        line.expired = ["e", "b", "d", "a"]
        #expect(text(line).contains("; 4 expired (a, b, d and 1 more); network"))
        line.withdrawn = ["jwks"]
        #expect(text(line).contains("; 4 expired (a, b, d and 1 more); 1 withdrawn (jwks); network"))
    }

    @Test("begins with a reload that was refused, since something else is in force than what stands in the files")
    func refused() {
        var line = StatusLine()
        line.refusedReload = RefusedReload(
            at: Self.noon - Self.hour, faults: 1, first: ConfigurationDiagnostic(file: "a.yaml", message: "x"))
        #expect(
            text(line)
                == "reload refused 11:00 (1 fault), the configuration before is in force; 0 pipelines; network not known"
        )
        line.refusedReload?.faults = 2
        line.refusedReload?.at -= 12 * Self.hour
        #expect(text(line).hasPrefix("reload refused yesterday 23:00 (2 faults), "))
    }

    @Test("says how many hooks fail")
    func hooks() {
        var line = StatusLine()
        line.failingHooks = 1
        #expect(text(line) == "0 pipelines; 1 hook fails; network not known")
        line.failingHooks = 2
        #expect(text(line) == "0 pipelines; 2 hooks fail; network not known")
    }

    @Test("names the first few by name and counts the others")
    func many() {
        for (count, expected) in [
            (3, "(a: x, since 12:00; b: x, since 12:00; c: x, since 12:00)"), (5, "; and 2 more)"),
        ] {
            var line = StatusLine()
            let names = ["e", "c", "a", "d", "b"].filter { count == 5 || $0 < "d" }
            line.counts = PipelineCounts(names.map { _ in .failed })
            for name in names { line.add(name) { ("x", Self.noon) } }
            #expect(line.failures.map(\.pipeline) == ["a", "b", "c"])
            #expect(text(line).contains(expected), "\(text(line))")
        }
    }

    @Test("cuts a long reason at its limit")
    func longReason() {
        for (length, isCut) in [(StatusLine.reasonLimit, false), (StatusLine.reasonLimit + 1, true)] {
            var line = StatusLine()
            line.counts = PipelineCounts([.failed])
            line.add("a") { (String(repeating: "é", count: length), Self.noon) }
            #expect(text(line).contains("é…") == isCut)
            #expect(text(line).count { $0 == "é" } == (isCut ? length - 2 : length))
        }
    }

    @Test(
        "tells another day's time from today's, by the clock of this place",
        arguments: [
            (-13, 0, "yesterday 23:00"), (-12, 0, "00:00"), (11, 0, "23:00"), (12, 0, "tomorrow 00:00"),
            (36, 0, "in 2 days"), (-37, 0, "2 days ago"), (12, -1, "23:00"), (-12, -1, "yesterday 23:00"),
        ] as [(Int64, Int64, String)])
    func otherDays(hours: Int64, offset: Int64, expected: String) {
        var line = StatusLine()
        line.next = ("a", Self.noon + hours * Self.hour)
        #expect(text(line, offset: offset * 3_600).hasSuffix("next refresh \(expected) (a)"))
    }

    @Test("begins with the disk when that is slow")
    func slowDisk() {
        var line = StatusLine()
        line.slowDisk = ("commit", 31)
        #expect(text(line).hasPrefix("disk slow: commit for 31 s; 0 pipelines;"))
    }
}
