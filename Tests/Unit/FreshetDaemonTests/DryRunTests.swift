import FreshetEventLoop
import Testing

@testable import FreshetDaemon

@Suite("Reports of dry runs")
struct DryRunReportTests {
    private func report(_ outcome: DryRunReport.Outcome, current: Bool) -> DryRunReport {
        var report = DryRunReport(name: "jwks", outcome: outcome, size: 20, digest: "ab", mediaType: "text/plain")
        if current { report.current = DryRunReport.Copy(path: "/c/jwks", size: 10, digest: "cd") }
        return report
    }

    @Test("the report distinguishes unchanged content, changed content and the first copy")
    func outcomes() {
        #expect(report(.unchanged, current: true).text.hasPrefix("jwks: unchanged\n"))
        #expect(!report(.unchanged, current: true).text.contains("was"))
        #expect(report(.changed, current: true).text.contains("size: 20 bytes, was 10\n"))
        #expect(report(.changed, current: false).text.hasPrefix("jwks: would be the first copy\n"))
    }

    @Test("control characters of untrusted text are escaped")
    func escaped() {
        var report = report(.changed, current: true)
        report.mediaType = "text/\u{1b}[31m"
        report.difference = ContentDifference(changes: [
            ContentDifference.Change(
                member: "a\nb", kind: "array", before: 1, after: 2, added: 1, removed: 0, changed: 0)
        ])
        report.branches = [DryRunReport.Branch(branch: "x", failure: "503\r")]
        #expect(report.text.unicodeScalars.allSatisfy { $0.value >= 0x20 || $0 == "\n" })
        #expect(report.text.contains("    .a\\nb: 2 items, was 1: 1 added\n"))
    }

    @Test("the report names differences of only the JSON formatting or only the order of a list")
    func same() {
        var report = report(.changed, current: true)
        report.difference = ContentDifference(changes: [])
        #expect(report.text.contains("only the formatting of the JSON"))
        report.difference = ContentDifference(changes: [
            ContentDifference.Change(
                member: "", kind: "array", before: 2, after: 2, added: 0, removed: 0, changed: 0)
        ])
        #expect(report.text.contains("difference: 2 items, was 2: in another order"))
    }

    @Test("the report shows the old and the new value of a member")
    func values() {
        var report = report(.changed, current: true)
        report.difference = ContentDifference(changes: [
            ContentDifference.Change(
                member: "issued", kind: "value", before: 1, after: 1, added: 0, removed: 0, changed: 1,
                removedValues: ["1"], addedValues: [#""a\u{1b}""#])
        ])
        #expect(report.text.contains(#"    .issued: "a\u{1b}", was 1"# + "\n"), "\(report.text)")
    }

    @Test("the number and the length of shown lines of diff are limited")
    func limits() {
        let lines = ["--- a", "+++ b"] + (1...TextDifference.lineLimit).map { "+\($0)" }
        let whole = TextDifference(Array((lines.joined(separator: "\n") + "\n").utf8))
        #expect(whole.lines.count == TextDifference.lineLimit && whole.lines.first == "+1" && !whole.isCut)
        let more = TextDifference(Array((lines + ["+x"]).joined(separator: "\n").utf8))
        #expect(more.lines.count == TextDifference.lineLimit && more.isCut)
        let long = "+" + String(repeating: "x", count: TextDifference.lineWidth)
        #expect(TextDifference(Array("--- a\n+++ b\n\(long)\n".utf8)).lines == [String(long.dropLast()) + "…"])
    }

    @Test("truncated output of diff is marked, also if it has only a few long lines")
    func fewLongLines() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let line = String(repeating: "x", count: 3000) + "\n"
        let long = Array(String(repeating: line, count: TextDifference.lineLimit - 10).utf8)
        let difference = try #require(await TextDifference.between([], and: long, on: loop))
        let (isCut, count) = (difference.isCut, difference.lines.count)
        #expect(isCut && count < TextDifference.lineLimit)
        #expect(difference.lines.dropFirst().allSatisfy { $0.count == TextDifference.lineWidth + 1 })
    }

    @Test("texts are compared by lines; binary or too large contents are not compared")
    func texts() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let difference = await TextDifference.between(Array("a\nb\n".utf8), and: Array("a\nc\n".utf8), on: loop)
        #expect(difference?.lines == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"])
        #expect(difference?.isCut == false)
        #expect(await TextDifference.between([0], and: [1], on: loop) == nil)
        #expect(await TextDifference.between([0xFF], and: [0x41], on: loop) == nil)
        let large = [UInt8](repeating: 0x41, count: TextDifference.sizeLimit + 1)
        #expect(await TextDifference.between(large, and: [0x41], on: loop) == nil)
    }
}
