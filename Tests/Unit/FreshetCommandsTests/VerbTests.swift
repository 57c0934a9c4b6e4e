import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

private let minute: Int64 = 60_000_000

/// A daemon with one pipeline in good order and one that fails.
private func oneGoodOneFailing() -> ScriptedService {
    let service = ScriptedService([])
    let now = Transcript.now
    let cause = CauseStatus(
        signal: "network", count: 2, first: now - 5 * minute, last: now - 4 * minute,
        detail: "default route via enp3s0")
    service.change { script in
        script.pipelines["jwks"] = PipelineStatus(
            name: "jwks", description: "Keys of the identity provider", source: "https://id.example.com/jwks.json",
            state: .loaded, freshness: .fresh,
            generation: GenerationStatus(
                number: 3, size: 1_229, digest: "ab", committedAt: now - 125 * minute,
                path: "/var/cache/freshet/current/jwks.json", mediaType: "application/json"),
            lastCheck: now - 3 * minute - 2_000_000,
            lastRun: RunStatus(
                number: 12, started: now - 3 * minute - 2_000_000, causes: [cause], durationUSec: 85_000,
                outcome: .unchanged, generation: 3),
            lastCauses: [cause, CauseStatus(signal: "timer", first: 1, last: 1)],
            nextRun: NextRun(at: now + 12 * minute, reason: "every 15min"), needsNetwork: true,
            path: "via enp3s0 from 192.0.2.7")
        script.pipelines["prices"] = PipelineStatus(
            name: "prices", source: "https://prices.example.com/", state: .waiting, waitingFor: .backoff,
            waitingUntil: now + 40_000_000, lastCauses: [CauseStatus(signal: "start", first: 1, last: 1)],
            failure: FailureStatus(message: "the origin answered 503", since: now - 10 * minute, attempts: 7))
        script.signals = [
            SignalStatus(
                name: "network", fact: "reachable via enp3s0", fired: 4, ignored: 17, lastFired: now - 2 * minute,
                lastDetail: "new gateway"),
            SignalStatus(name: "resume", fact: "", unavailable: "no logind"),
        ]
    }
    return service
}

@Suite(.serialized, .hangLimit) struct VerbTests: VerbSuite {
    var expectedRequests: [String]? { nil }

    func service() -> ScriptedService { oneGoodOneFailing() }

    @Test("status tells of a reload that was refused: when, how many faults, the first of them, and what shows all")
    func refusedReload() async throws {
        let service = ScriptedService([])
        service.change {
            $0.refusedReload = RefusedReload(
                at: Transcript.now - 5 * minute, faults: 2,
                first: ConfigurationDiagnostic(
                    file: "/etc/freshet/pipelines/a.yaml", line: 3, column: 11, message: "unknown key 'evry'"))
        }
        let transcript = Transcript()
        try await withControlServer(service, rights: ownRights) { path in
            #expect(freshetctl("status", transcript, socket: path) == .success)
        }
        let lines = transcript.output.split(separator: "\n").map(String.init)
        #expect(
            lines.contains(
                "   Reload: refused 5min ago, 2 faults, the configuration before is in force; 'freshetctl reload' tries anew"
            ), "\(transcript.output)")
        #expect(
            lines.contains("    Fault: /etc/freshet/pipelines/a.yaml:3:11: error: unknown key 'evry'"),
            "\(transcript.output)")
    }

    @Test("status and list tell of pages, and of a copy that is truncated")
    func pages() async throws {
        let service = service()
        service.change { script in
            script.pipelines["prices"] = nil
            script.pipelines["jwks"]?.state = .loading
            script.pipelines["jwks"]?.loadedBytes = 2_048
            script.pipelines["jwks"]?.loadedPages = 2
            script.pipelines["jwks"]?.generation?.truncated = true
        }
        try await withControlServer(service, rights: ownRights) { path in
            let status = Transcript()
            #expect(freshetctl("status jwks", status, socket: path) == .success)
            #expect(status.output.contains("State: loading, 2 pages, 2 KiB so far (fresh)\n"), "\(status.output)")
            #expect(status.output.contains("ago, truncated: there are more pages\n"), "\(status.output)")
            let list = Transcript()
            #expect(freshetctl("list", list, socket: path) == .success)
            #expect(list.output.contains(" 3 (truncated) "), "\(list.output)")
        }
    }

    @Test("status shows the daemon, and then a line for each pipeline")
    func status() async throws {
        try await check(
            "status",
            output: """
                ● freshetd 1.0
                    Since: Thu 1970-01-01 00:00:00 UTC; 56 years 10 months ago
                      PID: 42
                  Network: reachable via eth0
                Pipelines: 2: 1 loaded, 1 waiting

                NAME   STATE           COPY    SIZE CHECKED     NEXT     CAUSES
                jwks   loaded             3 1.2 KiB 3min 2s ago in 12min network, timer
                prices waiting:backoff    -       - -           -        start

                """)
    }

    @Test("status of several names shows everything about each")
    func statusOfSeveral() async throws {
        try await check(
            "status jwks prices",
            output: """
                ● jwks - Keys of the identity provider
                   Source: https://id.example.com/jwks.json
                    State: loaded (fresh)
                     Copy: generation 3, 1.2 KiB, since Sat 2026-11-21 00:34:23 UTC; 2h 5min ago
                     File: /var/cache/freshet/current/jwks.json
                  Checked: 3min 2s ago
                 Last run: 12: unchanged in 85 ms, begun 3min 2s ago
                   Causes: network (2 times, default route via enp3s0), timer
                 Next run: in 12min (every 15min)
                  Network: via enp3s0 from 192.0.2.7

                ● prices
                   Source: https://prices.example.com/
                    State: waiting for the next attempt, in 40s
                     Copy: none yet
                   Causes: start
                    Error: the origin answered 503
                    Since: Sat 2026-11-21 02:29:23 UTC; 10min ago, 7 attempts

                """)
    }

    @Test("status of a name shows that pipeline alone")
    func statusOfName() async throws {
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            #expect(freshetctl("status prices", transcript, socket: path) == .success)
        }
        #expect(transcript.output.hasPrefix("● prices\n") && !transcript.output.contains("jwks"))
    }

    @Test("list is a table; without a verb it is what is shown", arguments: ["list", "--json --no-pager", ""])
    func list(line: String) async throws {
        let json = line.contains("json")
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            #expect(freshetctl(line, transcript, socket: path) == .success)
        }
        if json {
            #expect(transcript.output.hasPrefix(#"{"pipelines":["#))
            return
        }
        #expect(
            transcript.output == """
                NAME   STATE           COPY    SIZE CHECKED     NEXT     CAUSES
                jwks   loaded             3 1.2 KiB 3min 2s ago in 12min network, timer
                prices waiting:backoff    -       - -           -        start

                2 pipelines listed.

                """)
    }

    @Test("list without a legend has no titles and no total")
    func listWithoutLegend() async throws {
        try await check(
            "list jwks --no-legend", output: "jwks loaded 3 1.2 KiB 3min 2s ago in 12min network, timer\n")
    }

    @Test("a misspelt name is a failure with a suggestion")
    func suggestion() async throws {
        for verb in ["status", "list", "refresh", "get", "monitor"] {
            try await check(
                "\(verb) jkws", status: .failure,
                talk: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
        }
    }

    @Test("a name that has a file, and is not in force, is told how it comes into force")
    func notInForce() async throws {
        let service = service()
        service.change { $0.filesNotInForce = ["jwks2": "/etc/freshet/pipelines/jwks2.yaml"] }
        for verb in ["status", "refresh", "hold"] {
            try await check(
                "\(verb) jwks2", service, status: .failure,
                talk: """
                    freshetctl: there is no pipeline 'jwks2' yet: /etc/freshet/pipelines/jwks2.yaml is not in force; \
                    'freshetctl reload' reads it, or says what is wrong with the configuration

                    """)
        }
    }

    @Test("hold and release act on all pipelines that there are; a name that is none is told, and a failure in the end")
    func holdSeveral() async throws {
        let service = service()
        try await check(
            "hold jkws prices jwks", service, status: .failure,
            talk: """
                freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?
                'prices' is held: nothing of it runs until 'freshetctl release prices'
                'jwks' is held: nothing of it runs until 'freshetctl release jwks'

                """)
        try await check(
            "release jwks jkws prices --json", service, status: .failure,
            output: """
                {"changed":true,"name":"jwks"}
                {"changed":true,"name":"prices"}

                """, talk: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
    }

    @Test("what is asked of several is answered in the order in which they were named, as often as they were")
    func order() async throws {
        try await check("is-fresh prices jwks prices", status: .failure, output: "none\nfresh\nnone\n")
        try await check("is-fresh prices *", status: .failure, output: "none\nfresh\n")
        try await check("is-fresh jwks p*", status: .failure, output: "fresh\nnone\n")
        try await check("show prices jwks -p name --value", output: "prices\n\njwks\n")
    }

    @Test("what an origin sent steers no terminal on which its copy is watched; lines and tabs stay")
    func watchedOnTerminal() {
        let content = "a\tb\n\u{1B}]0;title\u{7}c\n"
        #expect(
            String(decoding: Watch.harmless(Array(content.utf8)), as: UTF8.self) == "a\tb\n\\u{1b}]0;title\\u{7}c\n")
        #expect(Watch.harmless([]).isEmpty)
    }

    @Test("refresh, hold and release take patterns; what nothing is called is a failure")
    func patterns() async throws {
        try await check("refresh j* prices j*", talk: "jwks: refresh requested\nprices: refresh requested\n")
        let service = service()
        try await check("hold * --quiet", service)
        try await check(
            "release [jp]* --json", service,
            output: """
                {"changed":true,"name":"jwks"}
                {"changed":true,"name":"prices"}

                """)
        let none = "freshetctl: there is no pipeline 'zz*'; 'freshetctl list' shows those that there are\n"
        try await check(
            "hold zz* jwks", status: .failure,
            talk: none + "'jwks' is held: nothing of it runs until 'freshetctl release jwks'\n")
        try await check("refresh jwks zz*", status: .failure, talk: none)
    }

    @Test("refresh says that it was requested, unless it is to be quiet")
    func refresh() async throws {
        try await check("refresh jwks", talk: "jwks: refresh requested\n")
        try await check("refresh jwks --quiet")
    }

    @Test("refresh --wait says what came of each run")
    func refreshAndWait() async throws {
        let service = service()
        service.change { script in
            script.refresh["jwks"] = .success(
                RefreshResult(
                    name: "jwks", outcome: .changed, run: 13, generation: 3, size: 1_229, durationUSec: 85_000))
        }
        try await check(
            "refresh jwks --wait", service, output: "jwks: changed, generation 3, 1.2 KiB in 85 ms\n")
        #expect(service.asked == ["refresh jwks wait"])
        try await check("refresh -q jwks --wait", service)
        service.change {
            $0.refresh["jwks"] = .success(RefreshResult(name: "jwks", outcome: .unchanged, durationUSec: 9_000))
        }
        try await check("refresh --wait --force jwks", service, output: "jwks: unchanged in 9 ms\n")
        try await check(
            "refresh --wait --json jwks", service,
            output: #"{"results":[{"durationUSec":9000,"name":"jwks","outcome":"unchanged"}]}"# + "\n")
    }

    @Test("a run that failed is status 1, and said even when quiet")
    func refreshFails() async throws {
        let service = service()
        service.change {
            $0.refresh["jwks"] = .success(RefreshResult(name: "jwks", outcome: .failed, failure: "404\u{1B}[2J"))
            $0.refresh["prices"] = .success(RefreshResult(name: "prices", outcome: .cancelled))
        }
        try await check("refresh --wait -q jwks", service, status: .failure, talk: "jwks: failed: 404\\u{1b}[2J\n")
        try await check("refresh --wait prices", service, status: .failure, talk: "prices: cancelled\n")
    }

    @Test("patience is status 75 and says until when; a failure outweighs it")
    func tryLater() async throws {
        let service = service()
        let hint = TryLaterHint(reason: "the origin answered 429", until: Transcript.now + 3 * minute)
        service.change {
            $0.refresh["jwks"] = .failure(.tryLater(hint))
            $0.refresh["prices"] = .success(RefreshResult(name: "prices", outcome: .unchanged))
        }
        let until = "the origin answered 429, until Sat 2026-11-21 02:42:23 UTC (in 3min)"
        try await check(
            "refresh jwks", service, status: .tryLater,
            talk: "freshetctl: nothing was started: \(until); --force passes it\n")
        let several = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("refresh --all --wait", several, socket: path) == .tryLater)
        }
        #expect(
            several.output == "prices: unchanged\n"
                && several.talk == "jwks: not started: \(until); --force passes it\n")
        service.change { $0.refresh["prices"] = .success(RefreshResult(name: "prices", outcome: .failed)) }
        try await withControlServer(service) { path in
            #expect(freshetctl("refresh --all --wait", Transcript(), socket: path) == .failure)
        }
    }

    @Test("who may not is told how: status 77")
    func notPermitted() async throws {
        for line in ["refresh jwks", "reload"] {
            let transcript = Transcript()
            try await withControlServer(service(), rights: strangerRights) { path in
                #expect(freshetctl(line, transcript, socket: path) == .notPermitted)
            }
            #expect(transcript.talk.contains("as root, or as a member of the group freshet"))
        }
    }

    @Test("a daemon that is busy is status 75")
    func busy() async throws {
        let service = service()
        service.change { $0.reload = .failure(.busy("a reload is under way")) }
        try await check("reload", service, status: .tryLater, talk: "freshetctl: not now: a reload is under way\n")
    }

    @Test("get prints the content of the file that the daemon names")
    func get() async throws {
        let directory = try TemporaryDirectory()
        let content = String(repeating: "{\"keys\":[]}\n", count: 20_000)
        let path = try directory.write(content, to: "jwks.json")
        let service = service()
        service.change { $0.pipelines["jwks"]?.generation?.path = path }
        try await check("get jwks", service, output: content)
        unlink(path)
        try await check(
            "get jwks", service, status: .failure,
            talk: "freshetctl: cannot read '\(path)': No such file or directory\n")
    }

    @Test("get of a pipeline without a copy says where to look")
    func getNothing() async throws {
        try await check(
            "get prices", status: .failure,
            talk: "freshetctl: 'prices' has no copy yet; 'freshetctl status prices' says why\n")
    }

    @Test("get of a copy that is withdrawn fails as well, and says what prints it")
    func getWithdrawn() async throws {
        let service = service()
        service.change {
            $0.pipelines["jwks"]?.generation = nil
            $0.pipelines["jwks"]?.withdrawn = WithdrawnCopy(
                number: 7, size: 1, digest: "", committedAt: 1, since: Transcript.now - 5 * minute)
        }
        try await check(
            "get jwks", service, status: .failure,
            talk: "freshetctl: 'jwks' has no copy now: it is past its max-age, and was withdrawn 5min ago; "
                + "'freshetctl get jwks --generation 7' prints what it was\n")
    }

    @Test("signals shows the present facts, what is missing, and how much was heard and ignored")
    func signals() async throws {
        try await check(
            "signals",
            output: """
                SIGNAL  FACT                   FIRED IGNORED LAST     DETAIL
                network reachable via enp3s0       4      17 2min ago new gateway
                resume  unavailable: no logind     0       - -

                2 signals listed.

                """)
    }

    @Test("signals fits a terminal of 80 columns, and what is so now gives way last")
    func signalsOnTerminal() async throws {
        let service = service()
        service.change { script in
            script.signals.append(
                SignalStatus(
                    name: "dbus system interface=org.example.Printer member=Done", fact: "heard from :1.41",
                    fired: 12, ignored: 3, lastFired: Transcript.now - minute,
                    lastDetail: "org.example.Printer.Done from :1.41 at /org/example/Printer"))
        }
        let transcript = Transcript()
        try await withControlServer(service) { path in
            let context = transcript.context(
                environment: ["FRESHET_SOCKET": path, "SYSTEMD_COLORS": "0"], columns: 80)
            #expect(Freshetctl.run(["signals"], context) == .success)
        }
        #expect(
            transcript.output == """
                SIGNAL           FACT                   FIRED IGNORED LAST     DETAIL
                network          reachable via enp3s0       4      17 2min ago new gateway
                resume           unavailable: no logind     0       - -
                dbus system int… heard from :1.41          12       3 1min ago org.example.Prin…

                3 signals listed.

                """)
        #expect(transcript.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    /// What is printed of these events, until nobody reads.
    private func followed(
        _ arguments: [String], _ service: ScriptedService, _ events: [ControlEvent]
    ) async throws -> (output: String, talk: String) {
        let transcript = Transcript()
        try await withControlServer(service) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path]) { output in
                output.count { $0 == "\n" } < events.count
            }
            context.isTerminal = true
            context.environment["SYSTEMD_COLORS"] = "0"
            let talk = context.talk
            context.talk = { text in
                talk(text)
                for event in events { service.events.publish(event) }
            }
            #expect(Freshetctl.run(arguments, context) == .success)
        }
        return (transcript.output, transcript.talk)
    }

    private let occurrences = [
        ControlEvent.signal("network", number: 4, detail: "path changed: via 192.0.2.1", at: Transcript.now),
        .signal(
            "network", number: 1, detail: "reachable via wan0", source: "network 192.0.2.7", at: Transcript.now + 9_000),
        .fact("resume", "going to sleep", at: Transcript.now + 42_000),
        .signal("operator", number: 2, detail: "refresh", pipeline: "jwks", at: Transcript.now + 50_000),
        .signal("resume", number: 1, at: Transcript.now + 60_000),
        .skipped(3, at: Transcript.now + 70_000),
    ]

    @Test("signals --follow prints a line for each occurrence and each change of a fact, until nobody reads")
    func followSignals() async throws {
        let service = service()
        service.change { $0.signals.append(SignalStatus(name: "operator", fact: "")) }
        let (output, talk) = try await followed(["signals", "--follow"], service, occurrences)
        #expect(
            output == """
                02:39:23.000 network #4: path changed: via 192.0.2.1
                02:39:23.009 network 192.0.2.7 #1: reachable via wan0
                02:39:23.042 resume is now: going to sleep
                02:39:23.050 operator #2 for jwks: refresh
                02:39:23.060 resume #1
                02:39:23.070 3 events were missed here, as this client read too slowly

                """)
        #expect(talk == "Listening; end with Ctrl-C.\n")
    }

    @Test("signals --follow --json prints a JSON object a line")
    func followSignalsAsJSON() async throws {
        let (output, _) = try await followed(
            ["signals", "--follow", "--json"], service(), Array(occurrences.prefix(2)))
        #expect(
            output == """
                {"at":1795228763000000,"detail":"path changed: via 192.0.2.1","kind":"signal","number":4,\
                "signal":"network"}
                {"at":1795228763009000,"detail":"reachable via wan0","kind":"signal","number":1,\
                "signal":"network","source":"network 192.0.2.7"}

                """)
    }

    @Test("signals --follow of what does not exist is a failure with a suggestion, and names need --follow")
    func followUnknown() async throws {
        try await check(
            "signals --follow network resum", status: .failure,
            talk: "freshetctl: there is no signal 'resum'; did you mean 'resume'?\n")
        try await check(
            "signals --follow tide", status: .failure,
            talk: "freshetctl: there is no signal 'tide'; 'freshetctl signals' shows those that there are\n")
        let transcript = Transcript()
        #expect(freshetctl("signals network", transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.talk.contains("Names go with --follow; 'freshetctl signals fire NAME' raises a signal."))
    }

    @Test("signals --follow says that the daemon has ended: status 69")
    func followEnds() {
        let failure = CommandFailure(
            .closed, socket: "/run/s", isInstalled: true, times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notRunning && failure.message.contains("it stops"))
    }

    @Test("signals fire says how many pipelines heard it, unless it is to be quiet")
    func fire() async throws {
        let service = service()
        for (count, heard) in [
            (0, "no pipeline listens to it"), (1, "heard by 1 pipeline"), (2, "heard by 2 pipelines"),
        ] {
            service.change { $0.fired = .success(count) }
            try await check("signals fire network 192.0.2.7", service, talk: "network 192.0.2.7: raised, \(heard)\n")
        }
        #expect(service.asked.first?.hasPrefix("fire network 192.0.2.7 for user ") == true)
        try await check("signals fire resume --quiet", service)
        try await check("--json signals fire resume", service, output: #"{"pipelines":2}"# + "\n")
    }

    @Test("signals fire of what is a pipeline's own names the remedy; of what does not exist, what was meant")
    func fireRefused() async throws {
        let service = service()
        service.change { $0.fired = .failure(.cannotFire(name: "timer")) }
        try await check(
            "signals fire timer", service, status: .failure,
            talk: "freshetctl: 'timer' is not raised by hand: it is a single pipeline's, and 'freshetctl refresh NAME' "
                + "runs one\n")
        service.change { $0.fired = .failure(.noSuchSignal(name: "netwrk", suggestion: "network")) }
        try await check(
            "signals fire netwrk", service, status: .failure,
            talk: "freshetctl: there is no signal 'netwrk'; did you mean 'network'?\n")
        try await check(
            "signals fire network", service, rights: strangerRights, status: .notPermitted,
            talk: "freshetctl: you may not do this; do it as root, or as a member of the group freshet "
                + "('adduser NAME freshet')\n")
    }

    @Test("reload says what changed, and warns")
    func reload() async throws {
        let service = service()
        service.change {
            $0.reload = .success(ReloadSummary(added: ["a", "b"], removed: ["c"], unchanged: 1))
            $0.warnings = [ConfigurationDiagnostic(severity: .warning, file: "a.yaml", message: "unreadable")]
        }
        try await check(
            "reload --configuration-only", service,
            talk: "a.yaml: warning: unreadable\nadded a, b; removed c; 1 pipeline unchanged\n")
        #expect(service.asked == ["freshetctl reload configuration"])
    }

    @Test("a refused configuration is status 78 with file, line, column and a caret")
    func refused() async throws {
        let service = service()
        service.change {
            $0.reload = .failure(
                .configurationRefused([
                    ConfigurationDiagnostic(
                        file: "pipelines/jwks.yaml", line: 12, column: 7,
                        message: "unknown key 'evry'; did you mean 'every'?", excerpt: "…\tsh: {evry: 15min}", caret: 7)
                ]))
        }
        try await check(
            "reload", service, status: .configuration,
            talk: """
                pipelines/jwks.yaml:12:7: error: unknown key 'evry'; did you mean 'every'?
                   12 | …\tsh: {evry: 15min}
                      |  \t     ^
                freshetctl: the configuration has 1 fault, keeping the one before

                """)
        let json = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("reload --json", json, socket: path) == .configuration)
        }
        #expect(json.output.hasPrefix(#"{"diagnostics":[{"#))
    }

    @Test("of very many faults and names, the first are printed and the rest is counted", arguments: [0, 1])
    func many(beyond: Int) async throws {
        let service = service()
        let fault = ConfigurationDiagnostic(file: "a.yaml", message: "wrong")
        let faults = Reload.faultLimit + beyond
        service.change { $0.reload = .failure(.configurationRefused(Array(repeating: fault, count: faults))) }
        try await check(
            "reload", service, status: .configuration,
            talk: String(repeating: "a.yaml: error: wrong\n", count: Reload.faultLimit)
                + (beyond == 0 ? "" : "and 1 more, which freshetctl check names too\n")
                + "freshetctl: the configuration has \(faults) faults, keeping the one before\n")
        let names = (0..<Reload.nameLimit + beyond).map { "p\($0)" }
        service.change { $0.reload = .success(ReloadSummary(added: names, unchanged: 1)) }
        let shown = beyond == 0 ? names.joined(separator: ", ") : "\(names.count)"
        try await check("reload", service, talk: "added \(shown); 1 pipeline unchanged\n")
    }

    @Test("log-level prints the level, and sets one by our names and by those of systemctl")
    func logLevel() async throws {
        let service = service()
        try await check("log-level", service, output: "info\n")
        try await check("log-level --json", service, output: #"{"level":"info"}"# + "\n")
        try await check(
            "log-level info", service, talk: "nothing changed: the log level is info already\n")
        try await check(
            "log-level notice", service, talk: "the log level is notice until the daemon ends; it was info\n")
        try await check("log-level info --json", service, output: #"{"level":"info"}"# + "\n")
        for (name, level) in [
            ("trace", LogLevel.trace), ("debug", .debug), ("err", .error), ("error", .error), ("emerg", .critical),
            ("alert", .critical), ("crit", .critical), ("warning", .warning), ("7", .debug), ("0", .critical),
        ] {
            try await check("log-level \(name) --quiet", service)
            try await check("log-level", service, output: "\(level.rawValue)\n")
        }
        for name in LogLevel.names { #expect(LogLevel(name: name) != nil) }
    }

    @Test("reading the log level is for all, setting it is not")
    func logLevelRights() async throws {
        try await check("log-level", rights: strangerRights, output: "info\n")
        let transcript = Transcript()
        try await withControlServer(service(), rights: strangerRights) { path in
            #expect(freshetctl("log-level debug", transcript, socket: path) == .notPermitted)
        }
    }

    @Test("monitor prints a line for each event until nobody reads", arguments: [false, true])
    func monitor(json: Bool) async throws {
        let service = service()
        let run = RunStatus(
            number: 13, started: Transcript.now, causes: [CauseStatus(signal: "network", first: 1, last: 1)],
            durationUSec: 85_000, outcome: .failed, failure: "no route")
        let events = [
            ControlEvent.signal("network", number: 4, detail: "new gateway", at: Transcript.now),
            .state(.waiting, of: "jwks", waitingFor: .network, at: Transcript.now),
            .runEnded(run, of: "jwks", at: Transcript.now + 42_000),
        ]
        let transcript = Transcript()
        try await withControlServer(service) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path]) { output in
                output.count { $0 == "\n" } < 3
            }
            // A terminal is told when it listens; from then on nothing may be missed.
            context.isTerminal = true
            context.environment["SYSTEMD_COLORS"] = "0"
            context.talk = { _ in
                for event in events { service.events.publish(event) }
            }
            #expect(Freshetctl.run(json ? ["monitor", "--json"] : ["monitor"], context) == .success)
        }
        if json {
            let texts = transcript.output.split(separator: "\u{1E}")
            #expect(texts.count == 3 && texts.allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}\n") })
            #expect(transcript.output.hasPrefix("\u{1E}{\"at\":"))
        } else {
            #expect(
                transcript.output == """
                    02:39:23.000 signal network #4: new gateway
                    02:39:23.000 jwks: waiting for the network
                    02:39:23.042 jwks: run 13 failed in 85 ms: no route

                    """)
        }
    }
}
