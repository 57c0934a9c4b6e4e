import FreshetControl
import FreshetRender
import Testing

@testable import FreshetCommands

@Suite("A pipeline in detail")
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

    @Test("a wait for a permit names the limit, and a wait for the network leaves the detail to the network line")
    func waiting() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .waiting, waitingFor: .permit,
            waitingDetail: "6 requests are in progress at https://example.com, 2 others wait longer",
            needsNetwork: true,
            path: "via wan0")
        #expect(
            view(status).lines.contains(
                "    State: waiting for the request limit: 6 requests are in progress at https://example.com, 2 others wait longer"
            ))
        status.state = .loading
        status.waitingFor = .filesystem
        status.waitingDetail = "/mnt/nfs/a"
        #expect(view(status).lines.contains("    State: loading; waiting for the file system: /mnt/nfs/a"))
        status.state = .waiting
        status.waitingFor = .network
        status.waitingDetail = "a portal answered"
        status.path = "a portal answered"
        #expect(view(status).lines.contains("    State: waiting for the network"))
        #expect(view(status).lines.contains("  Network: a portal answered"))
    }

    @Test("a held pipeline shows since when, also while its last run is in progress")
    func held() {
        var status = PipelineStatus(name: "a", source: "https://example.com/", state: .held, freshness: .fresh)
        status.heldSince = now - 5 * Self.minute
        #expect(
            view(status).lines.contains("    State: held since Sat 2026-11-21 11:55:00 UTC; 5min ago; content is fresh")
        )
        status.state = .loading
        #expect(
            view(status).lines.contains(
                "    State: loading, held since Sat 2026-11-21 11:55:00 UTC; 5min ago; content is fresh"))
    }

    @Test("the times at which the copy becomes stale and expires are shown")
    func expiry() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loaded, freshness: .fresh,
            originExpires: now + 57 * Self.minute, expires: now + 1200 * Self.minute)
        #expect(
            view(status).lines.suffix(2) == [
                "    Fresh: until Sat 2026-11-21 12:57:00 UTC; in 57min (stated by the origin)",
                "  Expires: in 20h (max-age)",
            ])
        status.freshness = .expired
        status.expires = now - 5 * Self.minute
        #expect(view(status).lines.contains("    State: loaded; content is expired"))
        #expect(view(status).lines.last == "  Expires: 5min ago (max-age)")
        #expect(row(status).contains("loaded; expired"))
    }

    @Test("a withdrawn copy is shown with the time and the kept generation")
    func withdrawn() {
        let status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .failed, freshness: .expired,
            withdrawn: WithdrawnCopy(
                number: 7, size: 1_024, digest: "", committedAt: now - 90 * Self.minute, since: now - 5 * Self.minute))
        #expect(view(status).lines.contains("     Copy: withdrawn 5min ago; generation 7, 1 KiB, is kept"))
        #expect(row(status).contains("7 (withdrawn)"))
    }

    @Test("pending hooks have a line each, and failing hooks are shown in the row of the list too")
    func hooks() {
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .loaded,
            hooks: [PendingHook(hook: "/x", generation: 7, running: true)])
        #expect(view(status).lines.last == "     Hook: /x is running for generation 7")
        #expect(row(status).contains("loaded"))
        var pending = PendingHook(
            hook: "/x a", generation: 7, running: false, attempts: 3, since: now - 5 * Self.minute,
            error: "/x exited with status 1", next: now + Self.minute)
        status.hooks = [PendingHook(hook: "/y", generation: 7, running: false), pending]
        #expect(
            view(status).lines.suffix(2) == [
                "     Hook: /y waits to run for generation 7",
                "     Hook: /x a: /x exited with status 1, 3 attempts for generation 7, first failed 5min ago, next in 1min",
            ])
        #expect(row(status).contains("loaded; hook fails"))
        pending.hook = "hook shop"
        pending.description = "The shop"
        status.hooks = [pending]
        #expect(view(status).lines.last?.hasPrefix("     Hook: shop (The shop): /x exited with") == true)
        pending.running = true
        pending.next = nil
        status.hooks = [pending]
        #expect(view(status).lines.last?.hasSuffix("first failed 5min ago, is running again") == true)
    }

    @Test("failing branches are listed below their number, and replace the failure that repeats them")
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
        // If the whole run failed, the error is shown too.
        status.state = .failed
        #expect(view(status).lines.contains("    Error: 1 of 9 branches failed"))
    }

    @Test("on a terminal, long text wraps below its beginning; elsewhere lines are not wrapped")
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
                "           of 9 branches, 2 KiB so far;", "           content is stale", "     Copy: none yet",
                " Branches: 1 of 9 fail", "           comedy: the origin answered 404",
                "             Not Found, 3 attempts, first just", "             now",
            ])
        view.columns = nil
        #expect(
            view.lines.contains(
                "    State: loading [==========>             ] 44 %, 4 of 9 branches, 2 KiB so far; content is stale"))
        #expect(view.lines.count == 6)
    }

    @Test("after rejected content the reason is shown once, and the next run is that of the backoff")
    func rejected() {
        let reason = "rejected by check.jq: `.keys | length > 0` is false"
        var status = PipelineStatus(
            name: "a", source: "https://example.com/", state: .failed, freshness: .stale,
            nextRun: NextRun(at: now + Self.minute, reason: "timer"),
            failure: FailureStatus(message: reason, since: now, attempts: 1),
            candidate: CandidateStatus(digest: "cd", size: 12, rejectedAt: now, reason: reason))
        let lines = view(status).lines
        #expect(lines.contains("    State: failed; content is stale"))
        #expect(lines.contains(" Next run: in 1min (backoff)"))
        #expect(lines.contains("    Error: \(reason)"))
        #expect(lines.contains("  Failing: 1 attempt, since Sat 2026-11-21 12:00:00 UTC; just now"))
        #expect(lines.contains(" Rejected: 12 B, just now"))
        #expect(lines.count { $0.contains(reason) } == 1)
        #expect(row(status).contains("failed; stale"))
        status.failure = nil
        status.state = .loaded
        #expect(view(status).lines.contains(" Rejected: 12 B, just now: \(reason)"))
        #expect(view(status).lines.contains(" Next run: in 1min (timer)"))
    }

    @Test("the progress of a run is shown")
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
