import FreshetControl
import Testing

@testable import FreshetCommands

/// The problems that a diagnosis finds, as a table.
@Suite struct DiagnosisTests {
    private typealias Change = @Sendable (inout Diagnosis.Facts) -> Void

    private static let now = Transcript.now

    private static func facts(_ change: Change = { _ in }) -> Diagnosis.Facts {
        let generation = GenerationStatus(
            number: 3, size: 1_229, digest: "ab", committedAt: now - 60_000_000, path: "/current/jwks.json")
        var facts = Diagnosis.Facts(
            daemon: DaemonStatus(
                version: "1.0", pid: 42, since: now - 3_600_000_000, network: "reachable via eth0",
                networkReachable: true, pipelines: PipelineCounts([.loaded])),
            pipeline: PipelineStatus(
                name: "jwks", source: "https://id.example.com/jwks.json", state: .loaded, freshness: .fresh,
                generation: generation, lastCheck: now - 60_000_000,
                lastRun: RunStatus(number: 7, started: now - 60_000_000, durationUSec: 85_000, outcome: .unchanged),
                nextRun: NextRun(at: now + 840_000_000, reason: "timer"), needsNetwork: true, path: "via eth0"),
            wiring: PipelineDescription(
                name: "jwks", source: "https://id.example.com/jwks.json",
                signals: ["start", "network", "operator", "timer"], files: ["/current/jwks.json"],
                hooks: ["/bin/notify"],
                everyUSec: 900_000_000),
            signals: [
                SignalStatus(name: "start", fact: "", fired: 1, lastFired: now - 3_600_000_000),
                SignalStatus(name: "network", fact: "reachable via eth0"),
            ], isFileThere: true)
        change(&facts)
        return facts
    }

    private static func diagnosis(_ change: Change = { _ in }) -> Diagnosis {
        Diagnosis(facts(change), Times(now: now, timeZone: { _ in (0, "UTC") }))
    }

    @Test("if nothing is stuck, each step is good or does not apply")
    func sound() {
        let diagnosis = Self.diagnosis()
        #expect(diagnosis.stuck == nil)
        #expect(diagnosis.steps.allSatisfy { $0.verdict != .bad })
        #expect(diagnosis.conclusion.text == "Nothing is stuck: the copy is fresh; the next run is in 14min.")
        #expect(
            diagnosis.steps.map { "\($0.title): \($0.evidence)" } == [
                "daemon: freshetd 1.0 answers; it started 1h ago",
                "configuration: active: https://id.example.com/jwks.json",
                "held: no", "signal: start: fired 1 time, last 1h ago",
                "signal: network: not fired yet; reachable via eth0",
                "timer: every 15min, next in 14min (timer)", "network: via eth0",
                "run: #7 unchanged after 85 ms, 1min ago", "queue: not waiting", "checks: nothing is rejected",
                "copy: generation 3, 1.2 KiB, fresh, checked 1min ago, /current/jwks.json",
                "hooks: 1 hook, none pending",
            ])
    }

    @Test("a failure because of an input without a copy points to that input")
    func input() {
        let diagnosis = Self.diagnosis { facts in
            facts.wiring.inputs = ["other", "nf"]
            facts.pipeline.generation = nil
            facts.pipeline.lastRun = RunStatus(
                number: 1, started: Self.now - 60_000_000, durationUSec: 5, outcome: .failed,
                failure: "the source pipeline 'nf' has no copy yet")
        }
        #expect(diagnosis.stuck?.text == "The last run failed: the source pipeline 'nf' has no copy yet")
        #expect(diagnosis.stuck?.command == "freshetctl diagnose nf")
    }

    @Test("a copy that is published but not recorded is not said to be missing")
    func unrecorded() {
        let error = "published, but not recorded yet: no space for the index; free some space"
        let diagnosis = Self.diagnosis { facts in
            facts.pipeline.generation = nil
            facts.pipeline.copyError = error
        }
        #expect(diagnosis.stuck == Diagnosis.Conclusion(text: "The copy is \(error)."))
        #expect(diagnosis.steps.first { $0.title == "copy" }?.evidence == error)
    }

    @Test("a run that failed before the daemon started is not a problem")
    func failedBefore() {
        let diagnosis = Self.diagnosis { facts in
            facts.pipeline.lastRun = RunStatus(
                number: 1, started: facts.daemon.since - 1, durationUSec: 5, outcome: .failed, failure: "x")
        }
        #expect(diagnosis.stuck == nil)
        #expect(diagnosis.steps.first { $0.title == "run" }?.verdict == .neither)
    }

    @Test("a daemon that does not answer is distinguished from one that does not run")
    func silent() {
        let diagnosis = Diagnosis.withoutDaemon(
            "it does not answer", isHanging: true, remedy: "systemctl status freshetd")
        #expect(diagnosis.conclusion.text == "The daemon runs but does not answer: no copy is refreshed.")
        #expect(diagnosis.steps.map(\.verdict) == [.bad])
    }

    @Test("a refused reload is shown in the configuration step, and is not a problem of the pipeline")
    func refusedReload() {
        let diagnosis = Self.diagnosis {
            $0.daemon.refusedReload = RefusedReload(
                at: Self.now - 300_000_000, errors: 2, first: ConfigurationDiagnostic(file: "a.yaml", message: "x"))
        }
        #expect(diagnosis.stuck == nil)
        let step = diagnosis.steps.first { $0.title == "configuration" }
        #expect(step?.verdict == .neither)
        #expect(
            step?.evidence
                == "reload refused 5min ago: 2 errors ('freshetctl status'); still active: https://id.example.com/jwks.json"
        )
    }

    private static let failure = FailureStatus(message: "the origin answered 503", since: now - 60_000_000, attempts: 4)

    private static let stuck: [(name: String, change: Change, step: String, command: String)] = [
        (
            "faulty",
            {
                $0.wiring.invalid = true
                $0.pipeline.failure = FailureStatus(message: "jwks.yaml:2:1: unknown key", since: now, attempts: 1)
            }, "configuration", "freshetctl edit jwks"
        ),
        ("held", { $0.pipeline.heldSince = now - 1_000_000 }, "held", "freshetctl release jwks"),
        (
            "offline",
            {
                $0.pipeline.state = .waiting
                $0.pipeline.waitingFor = .network
                $0.pipeline.path = "wan0 is down"
                $0.pipeline.failure = failure
            }, "network", "freshetctl signals --follow network"
        ),
        (
            "failing",
            {
                $0.pipeline.state = .waiting
                $0.pipeline.waitingFor = .backoff
                $0.pipeline.failure = failure
            }, "run", "freshetctl logs jwks -n 20"
        ),
        (
            "refused",
            {
                $0.pipeline.failure = failure
                $0.pipeline.candidate = CandidateStatus(digest: "cd", size: 2, rejectedAt: now, reason: "too short")
            }, "run", "freshetctl diff jwks --candidate"
        ),
        (
            "budget",
            {
                $0.pipeline.waitingFor = .budget
                $0.pipeline.budget = BudgetStatus(limit: 10, periodUSec: 3_600_000_000, used: 10)
            }, "queue", "freshetctl refresh jwks --force --wait"
        ),
        ("patience", { $0.pipeline.waitingFor = .backoff }, "queue", "freshetctl refresh jwks --wait"),
        (
            "withdrawn",
            {
                $0.pipeline.withdrawn = WithdrawnCopy(number: 3, size: 1, digest: "ab", committedAt: 1, since: now)
                $0.pipeline.generation = nil
            }, "copy", "freshetctl refresh jwks --wait"
        ),
        ("gone", { $0.isFileThere = false }, "copy", "freshetctl refresh jwks --wait"),
        (
            "pinned",
            {
                $0.pipeline.generation?.behind = true
                $0.pipeline.generation?.pinnedSince = now
            }, "copy", "freshetctl unpin jwks"
        ),
        ("rolled back", { $0.pipeline.generation?.behind = true }, "copy", "freshetctl history jwks"),
        ("expired", { $0.pipeline.freshness = .expired }, "copy", "freshetctl refresh jwks --wait"),
        ("overdue", { $0.pipeline.freshness = .stale }, "copy", "freshetctl refresh jwks --wait"),
        (
            "no copy",
            {
                $0.pipeline.generation = nil
                $0.pipeline.freshness = nil
                $0.pipeline.state = .idle
            }, "copy", "freshetctl refresh jwks --wait"
        ),
        (
            "hook",
            {
                $0.pipeline.hooks = [
                    PendingHook(
                        hook: "/bin/notify", generation: 3, running: false, attempts: 2, since: now, error: "status 1")
                ]
            }, "hooks", "freshetctl logs jwks -n 20 -x"
        ),
    ]

    @Test("the first problem and a command that helps are shown", arguments: stuck.indices)
    func stuckAt(index: Int) throws {
        let (name, change, step, command) = Self.stuck[index]
        let diagnosis = Self.diagnosis(change)
        let conclusion = try #require(diagnosis.stuck, "\(name)")
        #expect(conclusion.command == command, "\(name)")
        #expect(diagnosis.steps.first { $0.verdict == .bad }?.title == step, "\(name)")
        #expect(!conclusion.text.isEmpty && conclusion.text.hasSuffix(".") || conclusion.text.contains(": "), "\(name)")
    }

    @Test(
        "the remedy fits the failure of the run",
        arguments: [
            ("the origin answered 404 Not Found (id.example.com)", "at this URL: https://id", "freshetctl edit jwks"),
            (
                "the origin answered 401 (a): the credential 'x' was read when the service started",
                "read its credentials 1h ago", "systemctl restart freshetd"
            ),
            ("the origin answered 403 Forbidden (a): check", "has no credential", "freshetctl edit jwks"),
            (
                "the origin answered 429 Too Many Requests (a)", "The next attempt is ",
                "freshetctl refresh jwks --force --wait"
            ),
            (
                "the certificate of a.example is not valid at this machine's date", "dates",
                "openssl s_client -connect a.example:443 </dev/null | openssl x509 -noout -subject -issuer -dates"
            ),
            ("could not resolve a.example: Name not known", "the resolver answers", "resolvectl query a.example"),
            (
                "could not connect to a.example: Network is unreachable", "refresh.needs-network",
                "getent ahosts a.example"
            ),
            ("could not resolve $(reboot)", "The runs fail", "freshetctl logs jwks -n 20"),
            ("could not resolve -x", "The runs fail", "freshetctl logs jwks -n 20"),
            ("the origin answered 503", "The runs fail", "freshetctl logs jwks -n 20"),
        ])
    func remedy(message: String, text: String, command: String) throws {
        let diagnosis = Self.diagnosis {
            $0.pipeline.failure = FailureStatus(message: message, since: Self.now - 60_000_000, attempts: 2)
        }
        let stuck = try #require(diagnosis.stuck)
        #expect(stuck.text.contains(text), "\(stuck.text)")
        #expect(stuck.command == command)
    }

    @Test(
        "a refusal names the credentials, their files and the age of these",
        arguments: [
            (
                CredentialFile(
                    name: "api-token", path: "/run/credentials/freshetd.service/api-token",
                    written: Self.now - 3_600_000_000),
                "The request has the credential 'api-token': /run/credentials/freshetd.service/api-token, written 1h ago.",
                "systemctl restart freshetd"
            ),
            (
                CredentialFile(path: "/etc/secrets/token", written: Self.now - 60_000_000),
                "The request has the credential file /etc/secrets/token, written 1min ago.",
                "freshetctl refresh jwks --wait"
            ),
            (
                CredentialFile(path: "/etc/secrets/token"),
                "The request has the credential file /etc/secrets/token, which does not exist.",
                "freshetctl refresh jwks --wait"
            ),
            (
                CredentialFile(name: "api-token"),
                "The request has the credential 'api-token': the service has no credentials.",
                "systemctl restart freshetd"
            ),
        ])
    func credentials(file: CredentialFile, text: String, command: String) throws {
        let diagnosis = Self.diagnosis {
            $0.wiring.credentials = [file]
            $0.pipeline.failure = FailureStatus(
                message: "the origin answered 401 Unauthorized (a): with the credential 'x', as it is now",
                since: Self.now - 60_000_000, attempts: 2)
        }
        let stuck = try #require(diagnosis.stuck)
        #expect(stuck.text.hasSuffix(text), "\(stuck.text)")
        #expect(stuck.command == command)
    }

    @Test("an access token that the origin refuses is no matter of the client's secret")
    func token() {
        let diagnosis = Self.diagnosis {
            $0.wiring.credentials = [CredentialFile(path: "/etc/secrets/client", written: Self.now)]
            $0.pipeline.failure = FailureStatus(
                message:
                    "the origin answered 401 Unauthorized (a): with an access token from id.example; check its scope",
                since: Self.now - 60_000_000, attempts: 2)
        }
        #expect(
            diagnosis.stuck?.text.hasSuffix("has accepted the client, and the origin refuses the token.") == true)
        #expect(diagnosis.stuck?.command == "freshetctl edit jwks")
    }

    @Test(
        "a refused certificate has a line with its subject, its issuer, its dates and its names",
        arguments: [
            (
                CertificateStatus(
                    subject: "CN=a.example", issuer: "CN=CA", notBefore: now - 9_000_000, notAfter: now - 60_000_000,
                    names: ["a.example", "b.example"]),
                "CN=a.example, issued by CN=CA; expired 1min ago (", "); for a.example, b.example"
            ),
            (
                CertificateStatus(
                    subject: "CN=a.example", issuer: "CN=CA", notBefore: now + 60_000_000, notAfter: now + 90_000_000),
                "CN=a.example, issued by CN=CA; valid only from ", "; for no host name"
            ),
            (
                CertificateStatus(
                    depth: 1, subject: "CN=CA", issuer: "CN=CA", notBefore: now - 1, notAfter: now + 90_000_000),
                "in the chain of the server's certificate: CN=CA, issued by itself; valid until ", "UTC"
            ),
            (
                CertificateStatus(subject: "", issuer: "CN=CA", names: ["192.0.2.1"]),
                "a certificate without a subject, issued by CN=CA; its dates cannot be read; ", "for 192.0.2.1"
            ),
        ])
    func certificate(certificate: CertificateStatus, begin: String, end: String) throws {
        let diagnosis = Self.diagnosis {
            $0.pipeline.failure = FailureStatus(
                message: "the certificate of a is not trusted", since: Self.now - 60_000_000, attempts: 2,
                certificate: certificate)
        }
        let step = try #require(diagnosis.steps.first { $0.title == "certificate" })
        #expect(step.verdict == .bad)
        #expect(step.evidence.hasPrefix(begin) && step.evidence.hasSuffix(end), "\(step.evidence)")
    }

    @Test("a captive portal's page is named")
    func portal() {
        let diagnosis = Self.diagnosis {
            $0.pipeline.state = .waiting
            $0.pipeline.waitingFor = .network
            $0.pipeline.waitingDetail = "probe.example answered 302 instead of 204 to http://portal.example/login"
        }
        #expect(diagnosis.stuck?.text.hasSuffix("Log in at http://portal.example/login") == true)
    }

    @Test(
        "without a route, the target that has none is named, and whether needs-network has an address",
        arguments: [
            ("192.0.2.1", "There is no route to 192.0.2.1. The pipeline runs when there is one."),
            (
                "internet",
                "There is no route to the internet, and refresh.needs-network names no address. The pipeline runs "
                    + "when there is a route. If the source is in another network, set refresh.needs-network to its "
                    + "address."
            ),
            (nil, "The source is not reachable. The pipeline runs when it is."),
        ] as [(String?, String)])
    func noRoute(target: String?, text: String) {
        let diagnosis = Self.diagnosis {
            $0.pipeline.state = .waiting
            $0.pipeline.waitingFor = .network
            $0.pipeline.path = "any text"
            $0.pipeline.noRouteTo = target
        }
        #expect(diagnosis.stuck?.text == text)
    }

    @Test("an invalid configuration is the last step")
    func invalid() {
        #expect(Self.diagnosis(Self.stuck[0].change).steps.map(\.title) == ["daemon", "configuration"])
    }

    @Test("a pipeline that only waits is not stuck")
    func waiting() {
        for reason in [WaitingReason.quiet, .permit, .sleep] {
            let diagnosis = Self.diagnosis {
                $0.pipeline.state = .waiting
                $0.pipeline.waitingFor = reason
            }
            #expect(
                diagnosis.stuck == nil
                    && diagnosis.conclusion.text.hasPrefix("Nothing is stuck: the pipeline waits for "))
        }
        let loading = Self.diagnosis {
            $0.pipeline.state = .loading
            $0.pipeline.generation = nil
            $0.pipeline.freshness = nil
        }
        #expect(loading.stuck == nil && loading.conclusion.text == "Nothing is stuck: a run is in progress.")
    }

    @Test("an unavailable signal is a problem only if nothing else can start a run")
    func unavailable() throws {
        let change: Change = { facts in
            facts.signals = facts.signals.map { signal in
                var signal = signal
                signal.unavailable = "no netlink"
                return signal
            }
        }
        let timed = Self.diagnosis(change)
        #expect(timed.stuck == nil)
        #expect(timed.steps.contains { $0.verdict == .neither && $0.evidence == "network: unavailable: no netlink" })
        #expect(timed.steps.allSatisfy { $0.verdict != .bad })
        let silent = Self.diagnosis { facts in
            change(&facts)
            facts.wiring.everyUSec = nil
        }
        #expect(silent.stuck?.text == "No signal of the pipeline can fire on this machine: start, network.")
        #expect(silent.steps.filter { $0.verdict == .bad }.map(\.title) == ["signal", "signal", "timer"])
        // Each problem has its mark.
        let byHand = Self.diagnosis { facts in
            facts.wiring.everyUSec = nil
            facts.wiring.signals = ["operator"]
            facts.pipeline.lastRun = nil
        }
        #expect(byHand.stuck?.text == "The pipeline has no signals: only a refresh runs it.")
        #expect(byHand.steps.first { $0.verdict == .bad }?.title == "timer")
    }

    @Test("many signals are counted, not listed")
    func many() {
        let diagnosis = Self.diagnosis { facts in
            facts.wiring.signals = (1...20).map { "file /etc/\($0)" }
            facts.signals = facts.wiring.signals.map { SignalStatus(name: $0, fact: "") }
        }
        #expect(diagnosis.steps.count { $0.title == "signal" } == 9)
        #expect(diagnosis.steps.contains { $0.evidence == "and 12 more" })
    }

    @Test("without a daemon there is one step, and the command that starts the daemon")
    func noDaemon() {
        let diagnosis = Diagnosis.withoutDaemon("nobody answers", remedy: "systemctl start freshetd")
        #expect(diagnosis.steps.count == 1 && diagnosis.stuck?.command == "systemctl start freshetd")
        // At another socket, the daemon is not that of the service manager.
        for (socket, command) in [
            ("/nonexistent/s", ""), ("/run/freshet/io.freshet.Control", "systemctl start freshetd"),
        ] {
            let transcript = Transcript()
            #expect(freshetctl("diagnose jwks", transcript, socket: socket) == .notRunning)
            #expect(
                transcript.output.hasSuffix(
                    "\nThe daemon does not run: no copy is refreshed.\n" + (command.isEmpty ? "" : "  \(command)\n")),
                "\(transcript.output)")
        }
    }
}
