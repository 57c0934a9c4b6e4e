import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

/// The output of each verb, compared with the records in `Golden`: as text in 80 columns, in 200 and in colour, in a
/// C locale, and as JSON. `FRESHET_RECORD=1 swift test --filter GoldenTests` records again; look at the difference.
@Suite(.serialized, .hangLimit) struct GoldenTests {
    private static let directory =
        #filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/Golden"

    /// Command lines, by the name of the record. `;` divides words where a space does not.
    private static let lines: [(name: String, line: String)] = [
        ("default", ""), ("status", "status"), ("status-one", "status jwks"), ("status-failed", "status flags"),
        ("status-several", "status homepage rates"), ("list", "list"), ("list-chosen", "list feed-* --state waiting"),
        ("list-limited", "list --limit 2"), ("list-bare", "list --no-legend"),
        ("show", "show jwks -p state,generation"),
        ("show-daemon", "show"), ("is-fresh", "is-fresh jwks flags"), ("wait", "wait jwks"),
        ("wait-late", "wait flags --timeout 1ms"), ("diagnose", "diagnose jwks"), ("diagnose-failed", "diagnose flags"),
        ("diagnose-waiting", "diagnose feed-a"), ("logs", "logs jwks -n 5"), ("cat", "cat jwks"), ("edit", "edit jwks"),
        ("refresh", "refresh jwks"), ("refresh-waited", "refresh jwks flags --wait"),
        ("load-more", "load-more homepage --wait"),
        ("set", "set homepage"), ("set-changed", "set homepage language=de"), ("unset", "unset homepage language"),
        ("get", "get jwks --generation 3"), ("history", "history jwks"), ("diff", "diff jwks 2 3 --lines"),
        ("accept", "accept jwks"), ("rollback", "rollback jwks"), ("pin", "pin jwks"), ("unpin", "unpin jwks"),
        ("watch", "watch jwks"), ("monitor", "monitor"), ("signals", "signals"), ("signals-follow", "signals --follow"),
        ("signals-fire", "signals fire network"), ("reload", "reload"), ("log-level", "log-level"), ("check", "check"),
        ("run", "run jwks --dry-run"), ("fsck", "fsck"), ("prune", "prune --dry-run"), ("hold", "hold jwks"),
        ("release", "release held"), ("unknown-name", "status jkws"), ("unknown-verb", "statsu"),
    ]

    /// The kinds of readers.
    private struct Reader {
        var name: String
        var columns: Int?
        var environment: [String: String] = [:]
        var json = false
    }

    private static let readers = [
        Reader(name: "80", columns: 80, environment: ["NO_COLOR": "1", "LANG": "C.UTF-8"]),
        Reader(name: "200-colours", columns: 200, environment: ["LANG": "C.UTF-8"]),
        Reader(name: "C", columns: 80, environment: ["SYSTEMD_COLORS": "0", "LC_ALL": "C"]),
        Reader(name: "json", columns: nil, json: true),
    ]

    private static let now = Transcript.now
    private static let minute: Int64 = 60_000_000

    /// A daemon with a pipeline in each state.
    private static func service() -> ScriptedService {
        let service = ScriptedService([])
        service.change { script in
            for pipeline in pipelines() { script.pipelines[pipeline.name] = pipeline }
            script.refresh["jwks"] = .success(
                RefreshResult(
                    name: "jwks", outcome: .changed, run: 13, generation: 4, size: 1_229, durationUSec: 85_000))
            script.refresh["flags"] = .success(
                RefreshResult(name: "flags", outcome: .failed, run: 9, failure: "the origin answered 503"))
            script.loadedMore = .success(
                LoadMoreResult(
                    name: "homepage", path: [], outcome: .changed, run: 4, generation: 8, size: 2_048,
                    durationUSec: 20_000,
                    pages: 2, hasMore: true))
            script.parameters = .success(
                ControlMessage.ParametersSet(
                    changed: ["language"], parameters: script.pipelines["homepage"]?.parameters ?? []))
            script.history = [
                PastGeneration(
                    number: 3, committedAt: now - minute, size: 14, digest: "5d3c91b7a0ee",
                    causes: [SignalCount("network")],
                    durationUSec: 85_000, current: true),
                PastGeneration(
                    number: 2, committedAt: now - 90 * minute, size: 12, digest: "0f6b1c24d91a",
                    causes: [SignalCount("timer"), SignalCount("resume")],
                    durationUSec: 91_000),
                PastGeneration(
                    number: 1, committedAt: now - 9_000 * minute, size: 1_126, digest: "77e0a9c3b5d2",
                    causes: [SignalCount("operator")],
                    kept: false),
            ]
            script.contents = [3: Array("one\ntwo\nthree\n".utf8), 2: Array("one\ntwo\nmore\n".utf8)]
            let generation = GenerationStatus(
                number: 2, size: 12, digest: "0f6b", committedAt: now - 90 * minute, path: "/current/jwks.json",
                behind: true)
            script.rollback = .success(ControlMessage.RolledBack(generation: generation, replaced: 3))
            script.pin = .success(ControlMessage.Pinned(generation: generation, changed: true))
            script.signals = [
                SignalStatus(
                    name: "network", fact: "reachable via enp3s0 from 192.0.2.7", fired: 4, ignored: 12,
                    lastFired: now - 3 * minute, lastDetail: "reachable via 192.0.2.1 on enp3s0"),
                SignalStatus(
                    name: "resume", fact: "awake – no sleep yet", unavailable: "no logind on this bus", ignored: 0),
                SignalStatus(name: "start", fact: "", fired: 1, lastFired: now - 600 * minute),
            ]
            script.reload = .success(ReloadSummary(added: ["new"], changed: ["jwks"], unchanged: 5))
            script.warnings = [
                ConfigurationDiagnostic(
                    severity: .warning, file: "/etc/freshet/pipelines/jwks.yaml", line: 3, column: 9,
                    message: "the user freshet may not read this", excerpt: "  file: ä.json", caret: 8)
            ]
            script.fired = .success(2)
            var examined = ControlMessage.Examined()
            examined.findings = [
                ExaminationFinding(
                    kind: .contentDamaged, pipeline: "jwks", generation: 2, path: "/generations/jwks/2-0f6b")
            ]
            (examined.pipelines, examined.generations, examined.bytes) = (1, 3, 1_152)
            script.examined[.pipeline("jwks")] = .success(examined)
            script.unowned = .success([
                UnownedPipeline(
                    name: "old-rates", file: "old-rates.json", generations: 5, bytes: 1_258_291,
                    committedAt: now - 9_000 * minute)
            ])
            for name in ["jwks", "flags", "feed-a"] {
                script.descriptions[name] = PipelineDescription(
                    name: name, source: script.pipelines[name]?.source ?? "",
                    signals: ["start", "network", "resume", "operator", "timer"], files: ["/current/\(name).json"],
                    hooks: ["/usr/lib/notify"], everyUSec: 15 * minute)
            }
        }
        return service
    }

    private static func pipelines() -> [PipelineStatus] {
        func generation(_ name: String, _ number: Int64, _ size: Int64) -> GenerationStatus {
            GenerationStatus(
                number: number, size: size, digest: "5d3c91b7a0ee", committedAt: now - 10 * minute,
                path: "/var/cache/freshet/current/\(name).json")
        }
        let cause = CauseStatus(
            signal: "network", number: 4, count: 2, first: now - 3 * minute, last: now - 3 * minute,
            detail: "reachable via 192.0.2.1 on enp3s0")
        let jwks = PipelineStatus(
            name: "jwks", description: "The provider’s signing keys",
            source: "https://id.example.com/.well-known/jwks.json",
            state: .loaded, freshness: .fresh, generation: generation("jwks", 3, 1_229), lastCheck: now - 3 * minute,
            lastRun: RunStatus(
                number: 12, started: now - 3 * minute, causes: [cause], durationUSec: 850, outcome: .unchanged),
            lastCauses: [cause], nextRun: NextRun(at: now + 12 * minute, reason: "timer"), needsNetwork: true,
            path: "reachable via 192.0.2.1 on enp3s0 from 192.0.2.7")
        var flags = PipelineStatus(
            name: "flags", source: "https://flags.example.com/v2/all", state: .waiting, waitingFor: .backoff,
            waitingUntil: now + minute / 2, freshness: .stale, generation: generation("flags", 7, 512),
            lastCheck: now - 90 * minute,
            lastRun: RunStatus(
                number: 8, started: now - minute, durationUSec: 40_000, outcome: .failed,
                failure: "the origin answered 503"),
            failure: FailureStatus(
                message: "the origin answered 503 Service Unavailable", since: now - 80 * minute, attempts: 9),
            budget: BudgetStatus(limit: 500, periodUSec: 86_400_000_000, used: 12))
        flags.hooks = [
            PendingHook(
                hook: "/usr/lib/notify kiosk", generation: 7, running: false, attempts: 3, since: now - 5 * minute,
                error: "exited with status 1", next: now + minute)
        ]
        let feed = PipelineStatus(
            name: "feed-a", source: "https://feeds.example.com/a", state: .waiting, waitingFor: .network,
            needsNetwork: true,
            path: "not reachable: enp3s0 is down or has no carrier")
        var homepage = PipelineStatus(
            name: "homepage", source: "https://api.example.com/topics", state: .loading, loadedBytes: 9_216,
            loadedPages: 3, endedBranches: 4, knownBranches: 9, freshness: .fresh,
            generation: generation("homepage", 7, 34_816), lastCheck: now - minute,
            lastRun: RunStatus(number: 3, started: now - 2_000_000), lastCauses: [cause])
        homepage.parameters = [
            ParameterStatus(name: "language", value: "de", default: "en", isSet: true, choices: ["de", "en"]),
            ParameterStatus(name: "query", value: "", default: "", pattern: "^[\\w ]*$"),
        ]
        homepage.more = MorePages(total: 1, places: [.init(path: ["comedy"], pages: 1)])
        var rates = PipelineStatus(name: "rates", source: "pipeline jwks", state: .failed, freshness: .expired)
        rates.withdrawn = WithdrawnCopy(number: 5, size: 4_096, digest: "ab", committedAt: 1, since: now - 20 * minute)
        rates.failure = FailureStatus(
            message: "a check refused it: too few items", since: now - 60 * minute, attempts: 2)
        rates.candidate = CandidateStatus(
            digest: "cd", size: 17, rejectedAt: now - 60 * minute, reason: "too few items: 1 of 10")
        var held = PipelineStatus(name: "held", source: "/srv/a", state: .held, generation: generation("held", 1, 3))
        held.heldSince = now - 30 * minute
        return [jwks, flags, feed, homepage, rates, held]
    }

    private static let news: [ControlEvent] = [
        .signal("network", number: 4, detail: "reachable via 192.0.2.1 on enp3s0", at: now),
        .fact("network", "not reachable: enp3s0 is down – no carrier", at: now + 1_000),
        .state(.waiting, of: "jwks", waitingFor: .network, at: now + 2_000),
        .runEnded(
            RunStatus(number: 13, started: now, durationUSec: 850, outcome: .failed, failure: "no route to host"),
            of: "jwks", at: now + 42_000),
    ]

    private static func transcript(of line: String, for reader: Reader) async throws -> String {
        let transcript = Transcript()
        let service = service()
        let words = line.split(separator: " ").map(String.init) + (reader.json && line != "edit jwks" ? ["--json"] : [])
        let events =
            line == "monitor"
            ? news.filter { $0.kind != .fact } : line == "signals --follow" ? Array(news.prefix(2)) : []
        let publisher = Task {
            guard !events.isEmpty else { return }
            while !service.events.isObserved { await Task.yield() }
            for event in events { service.events.publish(event) }
        }
        let status = try await withStatus { store in
            try await withControlServer(service) { path in
                var context = transcript.context(
                    environment: reader.environment.merging(["FRESHET_SOCKET": path, "PATH": "/usr/bin"]) { $1 },
                    existing: ["/var/cache/freshet/current/jwks.json", "/var/cache/freshet/current/flags.json"],
                    executable: ["/usr/sbin/freshetd", "/usr/bin/journalctl"]
                ) { output in
                    // A verb that follows events is stopped here.
                    switch line {
                    case "watch jwks": false
                    case "monitor", "signals --follow": output.count { $0 == "\n" } < events.count
                    default: true
                    }
                }
                context.isTerminal = reader.columns != nil
                context.columns = reader.columns
                store(Freshetctl.run(words, context))
            }
        }
        await publisher.value
        var text = "$ freshetctl \(words.joined(separator: " "))\n" + transcript.output
        if !transcript.printError.isEmpty { text += "--- talk\n" + transcript.printError }
        if !transcript.executed.isEmpty { text += "--- becomes\n" + transcript.executed.joined(separator: " ") + "\n" }
        text += "--- status \(status.rawValue)\n"
        // Escape sequences are readable in the records.
        return text.map { $0 == "\u{1B}" ? "\\e" : $0 == "\u{1E}" ? "\\x1e" : String($0) }.joined()
    }

    private static func withStatus(
        _ body: (@escaping @Sendable (CommandStatus) -> Void) async throws -> Void
    ) async throws -> CommandStatus {
        let box = Box()
        try await body { box.value = $0 }
        return box.value
    }

    /// `@unchecked Sendable`: written by the thread of the command, and read after it has ended.
    private final class Box: @unchecked Sendable { var value = CommandStatus.success }

    @Test("each verb prints the recorded output", arguments: lines.indices)
    func recorded(index: Int) async throws {
        let (name, line) = Self.lines[index]
        for reader in Self.readers {
            let text = try await Self.transcript(of: line, for: reader)
            let path = "\(Self.directory)/\(name).\(reader.name).txt"
            if getenv("FRESHET_RECORD") != nil {
                try EditedFile(path).replace(with: Array(text.utf8))
            } else {
                let recorded = try EditedFile.content(of: path).map { String(decoding: $0, as: UTF8.self) }
                #expect(text == recorded, "\(name) for \(reader.name)")
            }
            if reader.columns == 80, reader.name == "80" {
                let wide = text.split(separator: "\n").prefix { $0 != "--- talk" }.filter { $0.count > 80 }
                #expect(wide.isEmpty, "\(name): \(wide)")
            }
            if reader.name == "C" { #expect(text.utf8.allSatisfy { $0 < 0x80 }, "\(name) in a C locale") }
        }
    }

    @Test("each verb has recorded outputs, and no other files are there")
    func all() {
        let verbs = Set(Self.lines.compactMap { $0.line.split(separator: " ").first.map(String.init) })
        // Verbs that draw pictures have other records; `fleet` is freshetd's.
        let others: Set = [
            "graph", "timeline", "marbles", "report", "record", "top", "metrics", "help", "completions", "fleet",
        ]
        #expect(Set(Freshetctl.verbs).subtracting(others).isSubset(of: verbs))
        let names = Set(EditedFile.names(in: Self.directory) ?? [])
        #expect(names == Set(Self.lines.flatMap { line in Self.readers.map { "\(line.name).\($0.name).txt" } }))
    }
}
