import FreshetControl
import FreshetRender
import Testing

@testable import FreshetCommands

@Suite("A pipeline for people")
struct PipelineViewTests {
    private static let minute: Int64 = 60_000_000
    private let now: Int64 = 1_795_262_400_000_000

    private func row(_ status: PipelineStatus) -> [String] {
        SummaryView(summary: PipelineSummary(status), times: Times(now: now, timeZone: { _ in (0, "UTC") })).row.map(
            \.text)
    }

    private func view(_ pipeline: PipelineStatus) -> PipelineView {
        PipelineView(
            pipeline: pipeline, times: Times(now: now, timeZone: { _ in (0, "UTC") }),
            palette: Palette(isColourful: false))
    }

    @Test("a wait for its turn says whose limit it is, and one for the network leaves that to the network's line")
    func waiting() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .waiting, waitingFor: .slot,
            waitingDetail: "6 requests are under way at https://example.com, 2 others wait longer", needsNetwork: true,
            path: "via wan0")
        #expect(
            view(status).lines.contains(
                "    State: waiting for its turn: 6 requests are under way at https://example.com, 2 others wait longer"
            ))
        status.state = .loading
        status.waitingFor = .filesystem
        status.waitingDetail = "/mnt/nfs/a"
        #expect(view(status).lines.contains("    State: loading, waits for the file system: /mnt/nfs/a"))
        status.state = .waiting
        status.waitingFor = .network
        status.waitingDetail = "a portal answered"
        status.path = "a portal answered"
        #expect(view(status).lines.contains("    State: waiting for the network"))
        #expect(view(status).lines.contains("  Network: a portal answered"))
    }

    @Test("a held pipeline says since when, and one whose run ends still says so too")
    func held() {
        var status = PipelineStatus(name: "a", source: "https://example.com/", state: .held, freshness: .fresh)
        status.heldSince = now - 5 * Self.minute
        #expect(
            view(status).lines.contains("    State: held since Sat 2026-11-21 11:55:00 UTC; 5min ago (fresh)"))
        status.state = .loading
        #expect(
            view(status).lines.contains(
                "    State: loading, held since Sat 2026-11-21 11:55:00 UTC; 5min ago (fresh)"))
    }

    @Test("until when it is fresh by its origin's word, and when it is past its max-age")
    func expiry() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loaded, freshness: .fresh,
            originExpires: now + 57 * Self.minute, expires: now + 1200 * Self.minute)
        #expect(
            view(status).lines.suffix(2) == [
                "    Fresh: until Sat 2026-11-21 12:57:00 UTC; in 57min, says the origin",
                "  Expires: in 20h (max-age)",
            ])
        status.freshness = .expired
        status.expires = now - 5 * Self.minute
        #expect(view(status).lines.contains("    State: loaded (expired)"))
        #expect(view(status).lines.last == "  Expires: 5min ago (max-age)")
        #expect(row(status).contains("loaded (expired)"))
    }

    @Test("a withdrawn copy is said to be that, since when, and what of it is kept")
    func withdrawn() {
        let status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .failed, freshness: .expired,
            withdrawn: WithdrawnCopy(
                number: 7, size: 1_024, digest: "", committedAt: now - 90 * Self.minute, since: now - 5 * Self.minute))
        #expect(view(status).lines.contains("     Copy: withdrawn 5min ago; generation 7, 1 KiB, is kept"))
        #expect(row(status).contains("7 (withdrawn)"))
    }

    @Test("hooks that are owed have a line each; those that fail are in the row too")
    func hooks() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loaded,
            hooks: [PendingHook(hook: "/x", generation: 7, running: true)])
        #expect(view(status).lines.last == "     Hook: /x runs for generation 7")
        #expect(row(status).contains("loaded"))
        var debt = PendingHook(
            hook: "/x a", generation: 7, running: false, attempts: 3, since: now - 5 * Self.minute,
            error: "/x exited with status 1", next: now + Self.minute)
        status.hooks = [PendingHook(hook: "/y", generation: 7, running: false), debt]
        #expect(
            view(status).lines.suffix(2) == [
                "     Hook: /y waits for its turn for generation 7",
                "     Hook: /x a: /x exited with status 1, 3 attempts for generation 7, first failed 5min ago, next in 1min",
            ])
        #expect(row(status).contains("loaded (hook fails)"))
        debt.running = true
        debt.next = nil
        status.hooks = [debt]
        #expect(view(status).lines.last?.hasSuffix("first failed 5min ago, runs again") == true)
    }

    @Test("branches that fail are named below their number, and take the place of the failure that repeats them")
    func branches() {
        let failing = [
            BranchFailureStatus(
                path: ["comedy", "7"], message: "404 Not Found", since: now - 5 * Self.minute, attempts: 3)
        ]
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loaded,
            failure: FailureStatus(message: "1 of 9 branches failed", since: now, attempts: 1),
            branches: BranchesStatus(total: 9, failed: 1, failing: failing))
        #expect(
            view(status).lines.suffix(2) == [
                " Branches: 1 of 9 fail", "           comedy/7: 404 Not Found, 3 attempts, first 5min ago",
            ])
        // A run that failed as a whole has more to say.
        status.state = .failed
        #expect(view(status).lines.contains("    Error: 1 of 9 branches failed"))
    }

    @Test("on a terminal what is too long goes on below its own beginning; elsewhere a line is one")
    func wrapped() {
        var status = PipelineStatus(
            name: "a", description: "The signing keys of the provider that all services of the house trust",
            source: "https://example.com/a/path/that/is/longer/than/any/terminal/that/is/as/narrow", state: .loading,
            freshness: .stale,
            failure: FailureStatus(
                message: "the origin answered 503 Service Unavailable to all of its requests", since: now, attempts: 1),
            branches: BranchesStatus(
                total: 9, failed: 1,
                failing: [
                    BranchFailureStatus(
                        path: ["comedy"], message: "the origin answered 404 Not Found", since: now, attempts: 3)
                ]))
        (status.endedBranches, status.knownBranches, status.loadedBytes) = (4, 9, 2_048)
        var view = view(status)
        view.hasBars = true
        view.columns = 46
        #expect(
            view.lines == [
                "● a - The signing keys of the provider that", "  all services of the house trust",
                "   Source: https://example.com/a/path/that/is/longer/than/any/terminal/that/is/as/narrow",
                "    State: loading", "           [==========>             ] 44 %, 4",
                "           of 9 branches, 2 KiB so far (stale)", "     Copy: none yet",
                " Branches: 1 of 9 fail", "           comedy: the origin answered 404",
                "             Not Found, 3 attempts, first now",
            ])
        view.columns = nil
        #expect(
            view.lines.contains(
                "    State: loading [==========>             ] 44 %, 4 of 9 branches, 2 KiB so far (stale)"))
        #expect(view.lines.count == 6)
    }

    @Test("how far a run has come")
    func progress() {
        let status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loading, loadedBytes: 2_048, loadedPages: 3,
            endedBranches: 4, knownBranches: 9)
        let line = view(status).lines.first { $0.hasPrefix("    State: ") }
        #expect(line?.contains("3 pages") == true)
        #expect(line?.contains("4 of 9 branches") == true)
        #expect(line?.contains("2 KiB so far") == true)
    }
}
