import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

private let minute: Int64 = 60_000_000

/// A daemon with one good and one failing pipeline.
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

    @Test(
        "status shows a refused reload: the time, the number of errors, the first error, and a command that prints all")
    func refusedReload() async throws {
        let service = ScriptedService([])
        service.change {
            $0.refusedReload = RefusedReload(
                at: Transcript.now - 5 * minute, errors: 2,
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
                "   Reload: refused 5min ago: 2 errors; the previous configuration stays active; 'freshetctl reload' retries"
            ), "\(transcript.output)")
        #expect(
            lines.contains("    Error: /etc/freshet/pipelines/a.yaml:3:11: error: unknown key 'evry'"),
            "\(transcript.output)")
    }

    @Test("status and list show pages, and that a copy is truncated")
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
            #expect(
                status.output.contains("State: loading, 2 pages, 2 KiB so far; content is fresh\n"), "\(status.output)")
            #expect(status.output.contains("ago, truncated: there are more pages\n"), "\(status.output)")
            let list = Transcript()
            #expect(freshetctl("list", list, socket: path) == .success)
            #expect(list.output.contains(" 3 (truncated) "), "\(list.output)")
        }
    }

    @Test("status of very many pipelines has lines for those that failed or are held, and says how to see all")
    func manyPipelines() async throws {
        let service = ScriptedService((100...250).map { "p\($0)" })
        try await withControlServer(service, rights: ownRights) { path in
            let good = Transcript()
            #expect(freshetctl("status", good, socket: path) == .success)
            #expect(!good.output.contains("p100"))
            #expect(
                good.output.hasSuffix(
                    "\nNo pipeline has failed or is held; 'freshetctl status --all' lists all 151.\n"),
                "\(good.output)")
            service.change { $0.pipelines["p250"]?.state = .failed }
            let failed = Transcript()
            #expect(freshetctl("status", failed, socket: path) == .success)
            #expect(failed.output.contains("\np250") && !failed.output.contains("p249"), "\(failed.output)")
            #expect(failed.output.contains("\nOnly pipelines that failed or are held are listed; "))
            let all = Transcript()
            #expect(freshetctl("status --all", all, socket: path) == .success)
            #expect((100...250).allSatisfy { all.output.contains("\np\($0) ") }, "\(all.output)")
            #expect(!all.output.contains("--all"))
            #expect(freshetctl("status --all p100", Transcript(), socket: path) == .usage)
        }
    }

    @Test("status shows the daemon and a line for each pipeline")
    func status() async throws {
        try await check(
            "status",
            output: """
                ● freshetd 1.0
                    Since: Thu 1970-01-01 00:00:00 UTC; 56 years 10 months ago
                      PID: 42
                  Network: reachable via eth0
                Pipelines: 2: 1 loaded, 1 waiting

                NAME   STATE           GEN    SIZE CHECKED     NEXT     CAUSES
                jwks   loaded            3 1.2 KiB 3min 2s ago in 12min network, timer
                prices waiting:backoff   -       - -           -        the origin answered 503

                """)
    }

    @Test("status without a pipeline says how to make one")
    func noPipelines() async throws {
        try await withControlServer(ScriptedService([]), rights: ownRights) { path in
            let transcript = Transcript()
            #expect(freshetctl("status", transcript, socket: path) == .success)
            #expect(transcript.output.contains("No pipelines yet: 'freshetctl edit --new NAME' makes one"))
        }
    }

    @Test("status of several names shows each in detail")
    func statusOfSeveral() async throws {
        try await check(
            "status jwks prices",
            output: """
                ● jwks - Keys of the identity provider
                   Source: https://id.example.com/jwks.json
                    State: loaded; content is fresh
                     Copy: generation 3, 1.2 KiB, since Sat 2026-11-21 00:34:23 UTC; 2h 5min ago
                     File: /var/cache/freshet/current/jwks.json
                  Checked: 3min 2s ago
                 Last run: #12 unchanged after 85 ms, 3min 2s ago
                   Causes: network (2 times, default route via enp3s0), timer
                 Next run: in 12min (every 15min)
                  Network: via enp3s0 from 192.0.2.7

                ● prices
                   Source: https://prices.example.com/
                    State: waiting; next attempt in 40s
                     Copy: none yet
                   Causes: start
                    Error: the origin answered 503
                  Failing: 7 attempts, since Sat 2026-11-21 02:29:23 UTC; 10min ago

                """)
    }

    @Test("status of one name shows only that pipeline")
    func statusOfName() async throws {
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            #expect(freshetctl("status prices", transcript, socket: path) == .success)
        }
        #expect(transcript.output.hasPrefix("● prices\n") && !transcript.output.contains("jwks"))
    }

    @Test("list prints a table, and is the default verb", arguments: ["list", "--json --no-pager", ""])
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
                NAME   STATE           GEN    SIZE CHECKED     NEXT     CAUSES
                jwks   loaded            3 1.2 KiB 3min 2s ago in 12min network, timer
                prices waiting:backoff   -       - -           -        the origin answered 503

                2 pipelines listed.

                """)
    }

    @Test("list --no-legend prints no titles and no total")
    func listWithoutLegend() async throws {
        try await check(
            "list jwks --no-legend", output: "jwks loaded 3 1.2 KiB 3min 2s ago in 12min network, timer\n")
    }

    @Test("a misspelt name is a failure with a suggestion")
    func suggestion() async throws {
        for verb in ["status", "list", "refresh", "get", "monitor"] {
            try await check(
                "\(verb) jkws", status: .failure,
                printError: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
        }
    }

    @Test("for a pipeline whose file is not active yet, the error says how to activate it")
    func notInForce() async throws {
        let service = service()
        service.change { $0.inactiveFiles = ["jwks2": "/etc/freshet/pipelines/jwks2.yaml"] }
        for verb in ["status", "refresh", "hold"] {
            try await check(
                "\(verb) jwks2", service, status: .failure,
                printError: """
                    freshetctl: there is no pipeline 'jwks2' yet: /etc/freshet/pipelines/jwks2.yaml is not active; \
                    'freshetctl reload' reads it, or prints its errors

                    """)
        }
    }

    @Test("hold and release change all known pipelines, and report an unknown name at the end")
    func holdSeveral() async throws {
        let service = service()
        try await check(
            "hold jkws prices jwks", service, status: .failure,
            printError: """
                freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?
                'prices' is held: it does not run until 'freshetctl release prices'
                'jwks' is held: it does not run until 'freshetctl release jwks'

                """)
        try await check(
            "release jwks jkws prices --json", service, status: .failure,
            output: """
                {"changed":true,"name":"jwks"}
                {"changed":true,"name":"prices"}

                """, printError: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
    }

    @Test("status prints pipelines in the order of the arguments, as often as they are named")
    func order() async throws {
        try await check("is-fresh prices jwks prices", status: .failure, output: "none\nfresh\nnone\n")
        try await check("is-fresh prices *", status: .failure, output: "none\nfresh\n")
        try await check("is-fresh jwks p*", status: .failure, output: "fresh\nnone\n")
        try await check("show prices jwks -p name --value", output: "prices\n\njwks\n")
    }

    @Test("watch escapes control characters of the content for a terminal; lines and tabs stay")
    func watchedOnTerminal() {
        let content = "a\tb\n\u{1B}]0;title\u{7}c\n"
        #expect(
            String(decoding: Watch.harmless(Array(content.utf8)), as: UTF8.self) == "a\tb\n\\u{1b}]0;title\\u{7}c\n")
        #expect(Watch.harmless([]).isEmpty)
    }

    @Test("refresh, hold and release accept patterns; a pattern without a match is a failure")
    func patterns() async throws {
        try await check("refresh j* prices j*", printError: "jwks: refresh requested\nprices: refresh requested\n")
        let service = service()
        try await check("hold * --quiet", service)
        try await check(
            "release [jp]* --json", service,
            output: """
                {"changed":true,"name":"jwks"}
                {"changed":true,"name":"prices"}

                """)
        let none = "freshetctl: there is no pipeline 'zz*'; 'freshetctl list' lists the pipelines\n"
        try await check(
            "hold zz* jwks", status: .failure,
            printError: none + "'jwks' is held: it does not run until 'freshetctl release jwks'\n")
        try await check("refresh jwks zz*", status: .failure, printError: none)
    }

    @Test("refresh reports the request, unless --quiet is given")
    func refresh() async throws {
        try await check("refresh jwks", printError: "jwks: refresh requested\n")
        try await check("refresh jwks --quiet")
    }

    @Test("refresh --wait prints the outcome of each run")
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

    @Test("a failed run is status 1, and is printed also with --quiet")
    func refreshFails() async throws {
        let service = service()
        service.change {
            $0.refresh["jwks"] = .success(RefreshResult(name: "jwks", outcome: .failed, failure: "404\u{1B}[2J"))
            $0.refresh["prices"] = .success(RefreshResult(name: "prices", outcome: .cancelled))
        }
        try await check(
            "refresh --wait -q jwks", service, status: .failure, printError: "jwks: failed: 404\\u{1b}[2J\n")
        try await check("refresh --wait prices", service, status: .failure, printError: "prices: cancelled\n")
    }

    @Test("a request that was not started is status 75 with the time to try again; a failure has precedence")
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
            printError: "freshetctl: nothing was started: \(until); --force ignores it\n")
        let several = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("refresh --all --wait", several, socket: path) == .tryLater)
        }
        #expect(
            several.output.hasPrefix("prices: unchanged\n2 pipelines in ")
                && several.output.hasSuffix(": 1 unchanged, 1 not started\n")
                && several.printError == "jwks: not started: \(until); --force ignores it\n")
        service.change { $0.refresh["prices"] = .success(RefreshResult(name: "prices", outcome: .failed)) }
        try await withControlServer(service) { path in
            #expect(freshetctl("refresh --all --wait", Transcript(), socket: path) == .failure)
        }
    }

    @Test("a missing permission is status 77 with the remedy")
    func notPermitted() async throws {
        for line in ["refresh jwks", "reload"] {
            let transcript = Transcript()
            try await withControlServer(service(), rights: strangerRights) { path in
                #expect(freshetctl(line, transcript, socket: path) == .notPermitted)
            }
            #expect(transcript.printError.contains("be root or a member of group freshet"))
        }
    }

    @Test("a busy daemon is status 75")
    func busy() async throws {
        let service = service()
        service.change { $0.reload = .failure(.busy("a reload is in progress")) }
        try await check(
            "reload", service, status: .tryLater, printError: "freshetctl: try again later: a reload is in progress\n")
    }

    @Test("get prints the content that the daemon sends, and does not open the path that the daemon names")
    func get() async throws {
        let directory = try TemporaryDirectory()
        let content = String(repeating: "{\"keys\":[]}\n", count: 20_000)
        let service = service()
        for path in [
            try directory.write("a secret of the caller", to: "secret"), try directory.makeFIFO("fifo"),
            directory.path("missing"),
        ] {
            service.change { script in
                script.contents = [3: Array(content.utf8)]
                script.pipelines["jwks"]?.generation?.path = path
            }
            for user: UInt32 in [0, 1_000] {
                let transcript = Transcript()
                try await withControlServer(service) { socket in
                    let context = transcript.context(environment: ["FRESHET_SOCKET": socket], user: user)
                    #expect(Freshetctl.run(["get", "jwks"], context) == .success)
                }
                #expect(transcript.output == content && transcript.printError.isEmpty)
            }
        }
    }

    @Test("get opens the published file for a caller whom only an access control list lets read it, but not for root")
    func getByOwnRights() async throws {
        let directory = try TemporaryDirectory()
        let content = String(repeating: "{\"keys\":[]}\n", count: 20_000)
        let path = try directory.write(content, to: "jwks.json")
        let service = service()
        service.change { script in
            script.isReadable = false
            script.pipelines["jwks"]?.generation?.path = path
            script.pipelines["jwks"]?.generation?.size = Int64(content.utf8.count)
        }
        try await check("get jwks", service, output: content)
        let transcript = Transcript()
        try await withControlServer(service) { socket in
            let context = transcript.context(environment: ["FRESHET_SOCKET": socket], user: 0)
            #expect(Freshetctl.run(["get", "jwks"], context) == .notPermitted)
        }
        #expect(transcript.output.isEmpty)
        unlink(path)
        try await check(
            "get jwks", service, status: .failure,
            printError: "freshetctl: cannot read '\(path)': No such file or directory\n")
    }

    @Test("get does not print a file that is not the published file: a link, a FIFO, another user's, another size")
    func getAnotherFile() async throws {
        let directory = try TemporaryDirectory()
        let secret = try directory.write("secret", to: "secret")
        try #require(symlink(secret, directory.path("link")) == 0)
        // A file of a user who is not the one of this test.
        let foreign = geteuid() == 0 ? try directory.write("secret", to: "foreign") : "/etc/hostname"
        if geteuid() == 0 { try #require(chown(foreign, 1_234, 1_234) == 0) }
        for (path, reason) in [
            (directory.path("link"), "it is not a regular file"),
            (try directory.makeFIFO("fifo"), "it is not a regular file"),
            (directory.path, "it is not a regular file"), ("/dev/zero", "it is not a regular file"),
            (foreign, "it belongs to the user \(geteuid() == 0 ? 1_234 : 0), and the daemon's files to \(geteuid())"),
            (secret, "it has 6 bytes, and generation 3 has 1229"),
        ] {
            let service = service()
            service.change { script in
                script.isReadable = false
                script.pipelines["jwks"]?.generation?.path = path
            }
            try await check(
                "get jwks", service, status: .failure,
                printError: "freshetctl: cannot read '\(path)': \(reason)\n")
        }
    }

    @Test("get reads the next generation if a commit removed the one that the daemon named")
    func getReplaced() async throws {
        let service = service()
        service.change { script in
            script.contents = [5: Array("newest\n".utf8)]
            script.beforeContent = { [weak service] number in
                service?.change { $0.pipelines["jwks"]?.generation?.number = number + 1 }
            }
        }
        try await check("get jwks", service, output: "newest\n")
    }

    @Test("get gives up if each generation that the daemon names is gone when it is read")
    func getGone() async throws {
        try await check(
            "get jwks", status: .failure,
            printError: "freshetctl: generation 3 of 'jwks' is not kept; cache.keep sets how many are kept\n")
    }

    @Test("get of a pipeline without a copy names the command that shows why")
    func getNothing() async throws {
        try await check(
            "get prices", status: .failure,
            printError: "freshetctl: 'prices' has no copy yet; 'freshetctl status prices' shows why\n")
    }

    @Test("get of a withdrawn copy fails, and names the command that prints it")
    func getWithdrawn() async throws {
        let service = service()
        service.change {
            $0.pipelines["jwks"]?.generation = nil
            $0.pipelines["jwks"]?.withdrawn = WithdrawnCopy(
                number: 7, size: 1, digest: "", committedAt: 1, since: Transcript.now - 5 * minute)
        }
        try await check(
            "get jwks", service, status: .failure,
            printError: "freshetctl: 'jwks' has no copy now: it is past its max-age and was withdrawn 5min ago; "
                + "'freshetctl get jwks --generation 7' prints it\n")
    }

    @Test("signals lists facts, unavailable signals, and counts of fired and ignored events")
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

    @Test("signals fits a terminal of 80 columns, and keeps the facts longest")
    func signalsOnTerminal() async throws {
        let service = service()
        service.change { script in
            script.signals.append(
                SignalStatus(
                    name: "dbus system interface=org.example.Printer member=Done", fact: "receiving from :1.41",
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
                dbus system int… receiving from :1.41      12       3 1min ago org.example.Prin…

                3 signals listed.

                """)
        #expect(transcript.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    /// The output for these events, until the reader closes it.
    private func followed(
        _ arguments: [String], _ service: ScriptedService, _ events: [ControlEvent]
    ) async throws -> (output: String, printError: String) {
        let transcript = Transcript()
        try await withControlServer(service) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path]) { output in
                output.count { $0 == "\n" } < events.count
            }
            context.isTerminal = true
            context.environment["SYSTEMD_COLORS"] = "0"
            let printError = context.printError
            context.printError = { text in
                printError(text)
                for event in events { service.events.publish(event) }
            }
            #expect(Freshetctl.run(arguments, context) == .success)
        }
        return (transcript.output, transcript.printError)
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

    @Test(
        "signals --follow prints a line for each occurrence and each change of a fact, until the reader closes the output"
    )
    func followSignals() async throws {
        let service = service()
        service.change { $0.signals.append(SignalStatus(name: "operator", fact: "")) }
        let (output, printError) = try await followed(["signals", "--follow"], service, occurrences)
        #expect(
            output == """
                02:39:23.000 network #4: path changed: via 192.0.2.1
                02:39:23.009 network 192.0.2.7 #1: reachable via wan0
                02:39:23.042 resume is now: going to sleep
                02:39:23.050 operator #2 for jwks: refresh
                02:39:23.060 resume #1
                02:39:23.070 3 events skipped: this client read too slowly

                """)
        #expect(printError == "Waiting for events; end with Ctrl-C.\n")
    }

    @Test("signals --follow --json prints a JSON object per line")
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

    @Test("signals --follow of an unknown signal is a failure with a suggestion, and names need --follow")
    func followUnknown() async throws {
        try await check(
            "signals --follow network resum", status: .failure,
            printError: "freshetctl: there is no signal 'resum'; did you mean 'resume'?\n")
        try await check(
            "signals --follow tide", status: .failure,
            printError: "freshetctl: there is no signal 'tide'; 'freshetctl signals' lists the signals\n")
        let transcript = Transcript()
        #expect(freshetctl("signals network", transcript, socket: "/nonexistent/s") == .usage)
        #expect(
            transcript.printError.contains("Names need --follow; 'freshetctl signals fire NAME' fires a signal."))
    }

    @Test("signals --follow reports the end of the daemon with status 69")
    func followEnds() {
        let failure = CommandFailure(
            .closed, socket: "/run/s", isInstalled: true, times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notRunning && failure.message.contains("it is stopping"))
    }

    @Test("signals fire prints how many pipelines received the signal, unless --quiet is given")
    func fire() async throws {
        let service = service()
        for (count, received) in [
            (0, "no pipeline subscribes to it"), (1, "received by 1 pipeline"), (2, "received by 2 pipelines"),
        ] {
            service.change { $0.fired = .success(count) }
            try await check(
                "signals fire network 192.0.2.7", service, printError: "network 192.0.2.7: fired, \(received)\n")
        }
        #expect(service.asked.first?.hasPrefix("fire network 192.0.2.7 for user ") == true)
        try await check("signals fire resume --quiet", service)
        try await check("--json signals fire resume", service, output: #"{"pipelines":2}"# + "\n")
    }

    @Test("signals fire of a pipeline's own signal names the remedy; of an unknown signal, a similar name")
    func fireRefused() async throws {
        let service = service()
        service.change { $0.fired = .failure(.cannotFire(name: "timer")) }
        try await check(
            "signals fire timer", service, status: .failure,
            printError:
                "freshetctl: cannot fire 'timer': it belongs to a single pipeline; 'freshetctl refresh NAME' runs a "
                + "pipeline\n")
        service.change { $0.fired = .failure(.noSuchSignal(name: "netwrk", suggestion: "network")) }
        try await check(
            "signals fire netwrk", service, status: .failure,
            printError: "freshetctl: there is no signal 'netwrk'; did you mean 'network'?\n")
        try await check(
            "signals fire network", service, rights: strangerRights, status: .notPermitted,
            printError: "freshetctl: permission denied: be root or a member of group freshet "
                + "('adduser NAME freshet')\n")
    }

    @Test("reload prints the changes and the warnings")
    func reload() async throws {
        let service = service()
        service.change {
            $0.reload = .success(ReloadSummary(added: ["a", "b"], removed: ["c"], unchanged: 1))
            $0.warnings = [ConfigurationDiagnostic(severity: .warning, file: "a.yaml", message: "unreadable")]
        }
        try await check(
            "reload --configuration-only", service,
            printError: "a.yaml: warning: unreadable\nadded a, b; removed c; 1 pipeline unchanged\n")
        #expect(service.asked == ["freshetctl reload configurationOnly"])
    }

    @Test("reload --wait prints the first results of new and changed pipelines, with the status of refresh --wait")
    func reloadAndWait() async throws {
        let service = service()
        service.change {
            $0.reload = .success(
                ReloadSummary(added: ["jwks"], unchanged: 1, requestedRuns: [RequestedRun("jwks", after: 2)]))
            $0.refresh["jwks"] = .success(
                RefreshResult(name: "jwks", outcome: .failed, run: 3, failure: "the origin answered 503"))
        }
        try await check(
            "reload --wait --refresh", service, status: .failure,
            printError: "added jwks; 1 pipeline unchanged\njwks: failed: the origin answered 503\n")
        #expect(service.asked == ["freshetctl reload refresh", "await jwks after 2"])
        service.change { $0.reload = .success(ReloadSummary(unchanged: 2)) }
        try await check("reload --wait", service, printError: "2 pipelines unchanged\n")
        for wrong in ["reload --timeout 3s", "reload --refresh --configuration-only"] {
            #expect(freshetctl(wrong, Transcript()) == .usage)
        }
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
            printError: """
                pipelines/jwks.yaml:12:7: error: unknown key 'evry'; did you mean 'every'?
                   12 | …\tsh: {evry: 15min}
                      |  \t     ^
                freshetctl: reload refused: 1 error; the previous configuration stays active

                """)
        let json = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("reload --json", json, socket: path) == .configuration)
        }
        #expect(json.output.hasPrefix(#"{"diagnostics":[{"#))
    }

    @Test("of very many errors and names, the first are printed and the others are counted", arguments: [0, 1])
    func many(beyond: Int) async throws {
        let service = service()
        let error = ConfigurationDiagnostic(file: "a.yaml", message: "wrong")
        let errors = Reload.errorLimit + beyond
        service.change { $0.reload = .failure(.configurationRefused(Array(repeating: error, count: errors))) }
        try await check(
            "reload", service, status: .configuration,
            printError: String(repeating: "a.yaml: error: wrong\n", count: Reload.errorLimit)
                + (beyond == 0 ? "" : "and 1 more; 'freshetctl check' prints all\n")
                + "freshetctl: reload refused: \(errors) errors; the previous configuration stays active\n")
        let names = (0..<Reload.nameLimit + beyond).map { "p\($0)" }
        service.change { $0.reload = .success(ReloadSummary(added: names, unchanged: 1)) }
        let shown = beyond == 0 ? names.joined(separator: ", ") : "\(names.count)"
        try await check("reload", service, printError: "added \(shown); 1 pipeline unchanged\n")
    }

    @Test("log-level prints the level, and accepts the names of freshetd and of systemctl")
    func logLevel() async throws {
        let service = service()
        try await check("log-level", service, output: "info\n")
        try await check("log-level --json", service, output: #"{"level":"info"}"# + "\n")
        try await check(
            "log-level info", service, printError: "nothing changed: the log level is info already\n")
        try await check(
            "log-level notice", service, printError: "the log level is notice until the daemon ends; it was info\n")
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

    @Test("every user may read the log level, but not set it")
    func logLevelRights() async throws {
        try await check("log-level", rights: strangerRights, output: "info\n")
        let transcript = Transcript()
        try await withControlServer(service(), rights: strangerRights) { path in
            #expect(freshetctl("log-level debug", transcript, socket: path) == .notPermitted)
        }
    }

    @Test("monitor prints a line for each event until the reader closes the output", arguments: [false, true])
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
            // On a terminal, a message marks the time from which no event is missed.
            context.isTerminal = true
            context.environment["SYSTEMD_COLORS"] = "0"
            context.printError = { _ in
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
