import FreshetControl
import Testing

@testable import FreshetDaemon

@Suite("The status line")
struct StatusLineTests {
    /// 2026-11-21 12:00:00 UTC.
    private static let noon: Int64 = 1_795_262_400_000_000
    private static let hour: Int64 = 3_600_000_000

    private func text(_ line: StatusLine, offset: Int64 = 0) -> String { line.text(now: Self.noon, offset: offset) }

    @Test("the line has the number of pipelines, their states, the network and the next run")
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

    @Test("the line names failed pipelines with reason and time")
    func failed() {
        var line = StatusLine()
        line.counts = PipelineCounts([.loaded, .failed])
        line.add("jwks") { ("example.com answered 404 Not Found", Self.noon - Self.hour) }
        #expect(
            text(line).hasPrefix(
                "2 pipelines: 1 loaded, 1 failed (jwks: example.com answered 404 Not Found, since 11:00); network"))
    }

    @Test("the line names pipelines whose copies are older than max-age")
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

    @Test("the line begins with a refused reload, because the active configuration differs from the files")
    func refused() {
        var line = StatusLine()
        line.refusedReload = RefusedReload(
            at: Self.noon - Self.hour, errors: 1, first: ConfigurationDiagnostic(file: "a.yaml", message: "x"))
        #expect(
            text(line)
                == "reload refused 11:00 (1 error), the previous configuration stays active; 0 pipelines; "
                + "network not known")
        line.refusedReload?.errors = 2
        line.refusedReload?.at -= 12 * Self.hour
        #expect(text(line).hasPrefix("reload refused yesterday 23:00 (2 errors), "))
    }

    @Test("the line has the number of failing hooks")
    func hooks() {
        var line = StatusLine()
        line.failingHooks = 1
        #expect(text(line) == "0 pipelines; 1 hook fails; network not known")
        line.failingHooks = 2
        #expect(text(line) == "0 pipelines; 2 hooks fail; network not known")
    }

    @Test("the line names the hooks that do not run")
    func invalidHooks() {
        var line = StatusLine()
        line.invalidHooks = ["a"]
        #expect(text(line) == "0 pipelines; 1 hook does not run (a); network not known")
        line.invalidHooks = ["a", "b", "c", "d", "e"]
        #expect(text(line) == "0 pipelines; 5 hooks do not run (a, b, c and 2 more); network not known")
    }

    @Test("the line names the first failed pipelines and counts the others")
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

    @Test("a long reason is cut at its limit")
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
        "the time of another day includes the day, by local time",
        arguments: [
            (-13, 0, "yesterday 23:00"), (-12, 0, "00:00"), (11, 0, "23:00"), (12, 0, "tomorrow 00:00"),
            (36, 0, "in 2 days"), (-37, 0, "2 days ago"), (12, -1, "23:00"), (-12, -1, "yesterday 23:00"),
        ] as [(Int64, Int64, String)])
    func otherDays(hours: Int64, offset: Int64, expected: String) {
        var line = StatusLine()
        line.next = ("a", Self.noon + hours * Self.hour)
        #expect(text(line, offset: offset * 3_600).hasSuffix("next refresh \(expected) (a)"))
    }

    @Test("the line begins with a slow disk")
    func slowDisk() {
        var line = StatusLine()
        line.slowDisk = ("commit", 31)
        #expect(text(line).hasPrefix("disk slow: commit for 31 s; 0 pipelines;"))
    }
}
