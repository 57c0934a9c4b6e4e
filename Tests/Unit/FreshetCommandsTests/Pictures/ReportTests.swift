import ControlTestSupport
import FreshetControl
import FreshetRender
import Glibc
import TestSupport
import Testing

import enum FreshetModel.Base64

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct ReportTests {
    private static let daemon = DaemonStatus(
        version: "1.0", pid: 42, since: Scenario.now - 200 * Scenario.minute,
        network: "reachable via enp3s0 from 192.0.2.7", networkReachable: true,
        pipelines: PipelineCounts(Scenario.statuses.map(\.state)))

    private static func page(
        _ statuses: [PipelineStatus], _ descriptions: [PipelineDescription] = [], most: Int = 1_000,
        title: String = "Freshet status"
    ) -> String {
        var rows = StatusReport.ordered(statuses.map { PipelineSummary($0) })
        for index in rows.indices.prefix(StatusReport.mostDrawn) {
            rows[index].details = statuses.first { $0.name == rows[index].summary.name }
        }
        let report = StatusReport(
            daemon: daemon, rows: Array(rows.prefix(most)), total: rows.count, bad: rows.count(where: \.isBad),
            graph: PipelineGraph(descriptions, statuses),
            timeline: Timeline(Scenario.history, descriptions, isChosen: false))
        return ReportPage(report: report, times: Scenario.times, title: title).text
    }

    @Test("the policy of the page allows exactly its style sheet")
    func digest() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/style"
        try EditedFile(path).replace(with: Array(ReportStyle.text.utf8))
        let ended = try ProgramRunner.runCollected("/usr/bin/sha256sum", [path], withErrors: false, limit: .max)
        let expected = String(decoding: ended.output.prefix(64), as: UTF8.self)
        let bytes = try #require(Base64.bytes(of: ReportStyle.digest))
        let digest = bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        #expect(digest == expected, "ReportStyle.digest has to be the digest \(expected), in Base64")
        #expect(Self.page(Scenario.statuses).contains("<style>\(ReportStyle.text)</style>"))
    }

    @Test("the page has each pipeline with its state, those that fail first, and both pictures")
    func content() throws {
        var statuses = Scenario.statuses
        statuses[1].failure = FailureStatus(
            message: "the origin answered 503", since: Scenario.now - 5 * Scenario.minute, attempts: 3)
        let page = Self.page(statuses, Scenario.descriptions)
        let flags = try #require(page.firstRange(of: "<th scope=\"row\">flags</th>"))
        let catalogue = try #require(page.firstRange(of: "<th scope=\"row\">catalogue</th>"))
        #expect(flags.lowerBound < catalogue.lowerBound)
        #expect(page.contains("<p class=\"is-bad\">the origin answered 503</p>") && page.contains("3 attempts, since"))
        #expect(page.contains("1 pipeline fails, or its copy is too old."))
        #expect(page.contains("datetime=\"2026-11-21T02:36:23Z\""))
        #expect(page.contains("aria-label=\"Timeline\"") && page.contains("aria-label=\"Graph\""))
        #expect(page.split(separator: "<svg ").count == 3 && page.hasSuffix("</html>\n"))
        // Nothing is loaded, and nothing runs.
        for word in ["<script", " src=", " href=", "url(", "@import", " style=", " onload", "http-equiv=\"refresh\""] {
            #expect(!page.contains(word), "\(word)")
        }
    }

    @Test("foreign text is escaped: names, errors, origins, hooks and the title")
    func hostile() {
        let attack = "</td></svg></style><script>alert(1)</script><img src=x onerror=\"a\">&'\u{1B}\u{202E}"
        var status = Scenario.status("a\(attack)", .failed)
        status.failure = FailureStatus(message: attack, since: Scenario.now, attempts: 1)
        var description = Scenario.description("a\(attack)", ["network"], hooks: [attack])
        description.source = "https://\(attack)"
        description.description = attack
        let page = Self.page([status], [description], title: attack)
        #expect(!page.contains("<script") && !page.contains("<img") && !page.contains("\u{202E}"))
        #expect(page.split(separator: "</style>").count == 2 && page.split(separator: "</svg>").count == 3)
        #expect(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
    }

    @Test("ten thousand pipelines are a page of bounded size, which says what it leaves out")
    func many() {
        let statuses = (0..<10_000).map {
            Scenario.status("pipeline-\(10_000 + $0)", $0 % 100 == 0 ? .failed : .loaded)
        }
        let page = Self.page(statuses)
        #expect(page.split(separator: "<th scope=\"row\">").count == 1_001)
        #expect(page.contains("9000 further pipelines not shown.") && page.contains("100 pipelines fail"))
        #expect(page.contains("It has the first 100 pipelines of the table."))
        #expect(page.utf8.count < 2_000_000)
    }

    @Test("an error of any length is cut")
    func longError() {
        var status = Scenario.status("a", .failed)
        status.failure = FailureStatus(message: String(repeating: "x", count: 100_000), since: 0, attempts: 1)
        #expect(Self.page([status]).utf8.count < 20_000)
    }

    private func run(_ line: String) async throws -> (CommandStatus, Transcript) {
        let service = ScriptedService([])
        service.change { script in
            for status in Scenario.statuses { script.pipelines[status.name] = status }
            for description in Scenario.descriptions { script.descriptions[description.name] = description }
        }
        for event in Scenario.events { service.events.publish(event) }
        let transcript = Transcript()
        let result = ResultBox()
        try await withControlServer(service) { path in
            result.value = freshetctl(line, transcript, socket: path)
        }
        return (result.value, transcript)
    }

    /// `@unchecked Sendable`: written by the thread of the command, and read after it has ended.
    private final class ResultBox: @unchecked Sendable { var value = CommandStatus.success }

    @Test("report writes to standard output, or replaces a file as a whole and keeps its mode")
    func verb() async throws {
        let (status, transcript) = try await run("report")
        #expect(status == .success && transcript.printError.isEmpty)
        #expect(transcript.output.hasPrefix("<!DOCTYPE html>") && transcript.output.contains(">homepage</th>"))
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/status.html"
        let (written, quiet) = try await run("report flags -o \(path)")
        #expect(written == .success && quiet.output.isEmpty)
        var before = stat()
        #expect(stat(path, &before) == 0 && before.st_mode & 0o7777 == 0o644 & ~EditedFile.creationMask())
        #expect(chmod(path, 0o640) == 0)
        let (again, _) = try await run("report -o \(path)")
        var after = stat()
        #expect(again == .success && stat(path, &after) == 0 && after.st_mode & 0o7777 == 0o640)
        #expect(before.st_ino != after.st_ino)
        #expect(EditedFile.names(in: directory.path) == ["status.html"])
    }

    @Test("a file that cannot be replaced, or that is a link, stays, and the error names it")
    func refused() async throws {
        let directory = try TemporaryDirectory()
        let link = "\(directory.path)/link.html"
        #expect(symlink("/nonexistent", link) == 0)
        let (status, transcript) = try await run("report -o \(link)")
        #expect(status == .failure && transcript.printError.contains("'\(link)' is a link"))
        let (missing, reason) = try await run("report -o \(directory.path)/none/status.html")
        #expect(missing == .failure && reason.printError.contains("cannot make a file in"))
    }
}
