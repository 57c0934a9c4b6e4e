import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct GenerationVerbTests: VerbSuite {
    private let caller = "user \(geteuid()), process \(getpid())"

    func service() -> ScriptedService {
        let service = ScriptedService(["jwks", "new"])
        let now = Transcript.now
        service.change { script in
            script.history = [
                PastGeneration(
                    number: 12, committedAt: now - 60_000_000, size: 1_229, digest: String(repeating: "ab", count: 32),
                    causes: [SignalCount("network", count: 2), SignalCount("timer")], durationUSec: 85_000,
                    current: true),
                PastGeneration(
                    number: 11, committedAt: now - 3_600_000_000, size: 5, digest: String(repeating: "cd", count: 32),
                    truncated: true),
                PastGeneration(
                    number: 9, committedAt: 0, size: 0, digest: String(repeating: "0", count: 64),
                    causes: [SignalCount("start")],
                    durationUSec: 2_400_000, kept: false),
            ]
            script.contents[11] = Array("old\0\n".utf8)
        }
        return service
    }

    @Test("history names the mirror of each generation, if there are mirrors")
    func mirrors() async throws {
        let service = service()
        service.change { $0.history[0].mirror = "https://b.example/\u{1B}[2J" }
        try await check(
            "history jwks --no-legend -n 2", service,
            output: """
                12 current Sat 2026-11-21 02:38:23 UTC         1.2 KiB abababababab 85 ms network (2), timer https://b.example/\\u{1b}[2J
                11 kept    Sat 2026-11-21 01:39:23 UTC 5 B (truncated) cdcdcdcdcdcd     - -                  -

                """)
    }

    @Test("history lists kept and removed generations")
    func history() async throws {
        try await check(
            "history jwks", rights: strangerRights,
            output: """
                GENERATION CONTENT COMMITTED                              SIZE DIGEST        TOOK CAUSES
                        12 current Sat 2026-11-21 02:38:23 UTC         1.2 KiB abababababab 85 ms network (2), timer
                        11 kept    Sat 2026-11-21 01:39:23 UTC 5 B (truncated) cdcdcdcdcdcd     - -
                         9 removed Thu 1970-01-01 00:00:00 UTC             0 B 000000000000 2.4 s start

                3 generations of jwks, 2 kept.

                """)
        try await check(
            "history jwks -n 1 --no-legend",
            output: "12 current Sat 2026-11-21 02:38:23 UTC 1.2 KiB abababababab 85 ms network (2), timer\n")
        let none = ScriptedService(["new"])
        try await check("history new", none, printError: "'new' has had no copy yet.\n")
        try await check(
            "history jwks -n 0", status: .usage,
            printError: """
                Error: -n needs a number of at least 1.
                Usage: freshetctl history <name> [--lines <lines>] [--key <path>] [--socket <path>] [--user] [--json] [--no-legend] [--no-pager] [--quiet]
                  See 'freshetctl history --help' for more information.

                """)
    }

    @Test("history fits narrow terminals: less important columns are left out, and causes stay", arguments: [80, 60])
    func narrowHistory(columns: Int) async throws {
        let transcript = Transcript()
        try await withControlServer(service(), rights: strangerRights) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path])
            context.columns = columns
            #expect(Freshetctl.run(["history", "jwks"], context) == .success)
        }
        let lines = transcript.output.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= columns }, "\(transcript.output)")
        #expect(lines[0].hasPrefix("GENERATION CONTENT COMMITTED ") && lines[0].hasSuffix(" CAUSES"))
    }

    @Test("history --json prints the reply of the interface")
    func json() async throws {
        let service = ScriptedService(["jwks"])
        service.change { $0.history = [PastGeneration(number: 1, committedAt: 2, size: 3, digest: "ab")] }
        let generation = #"{"committedAt":2,"current":false,"digest":"ab","kept":true,"number":1,"size":3}"#
        try await check("history jwks --json", service, output: #"{"generations":[\#(generation)]}"# + "\n")
        try await check("get jwks --generation 1 --json", service, output: #"{"generation":\#(generation)}"# + "\n")
        try await check(
            "get jwks --generation 2 --json", service, status: .failure,
            printError:
                "freshetctl: generation 2 of 'jwks' is not kept; kept: 1; cache.keep sets how many are kept\n"
        )
    }

    @Test("get --generation prints the content unchanged")
    func get() async throws {
        try await check("get jwks --generation 11", rights: strangerRights, output: "old\0\n")
        try await check(
            "get jwks --generation 9", status: .failure,
            printError: "freshetctl: generation 9 of 'jwks' is not kept; cache.keep sets how many are kept\n")
        let service = service()
        service.change { $0.isReadable = false }
        try await check(
            "get jwks --generation 11", service, status: .notPermitted,
            printError:
                "freshetctl: permission denied: cannot read generation 11 of 'jwks'; be root or a member of the group of its "
                + "file, or set cache.mode\n")
    }

    @Test("rollback prints the current generation, and what replaces it")
    func rollback() async throws {
        let service = service()
        var generation = GenerationStatus(number: 11, size: 5, digest: "cd", committedAt: 1, path: "/x", behind: true)
        service.change { [generation] in $0.rollback = .success(.init(generation: generation, replaced: 12)) }
        try await check(
            "rollback jwks", service,
            printError: """
                generation 11 of 'jwks' is current, instead of 12
                The next change at the source replaces it, unless 'freshetctl pin jwks' keeps it.

                """, asked: ["rollback jwks before for \(caller)"])
        generation.behind = nil
        let forward = self.service()
        forward.change { [generation] in $0.rollback = .success(.init(generation: generation)) }
        try await check(
            "rollback jwks 11", forward, printError: "generation 11 of 'jwks' is current\n",
            asked: ["rollback jwks 11 for \(caller)"])
        let pinned = self.service()
        pinned.change { $0.rollback = .failure(.pinned(name: "jwks", number: 12)) }
        try await check(
            "rollback jwks", pinned, status: .failure,
            printError:
                "freshetctl: nothing changed: 'jwks' is pinned at generation 12; 'freshetctl unpin jwks' unpins it\n",
            asked: ["rollback jwks before for \(caller)"])
    }

    @Test("a failed rollback is not status 75")
    func failedRollback() async throws {
        for (error, words) in [
            (ControlError.failed(name: "jwks", reason: "no\u{7} room"), "'jwks': no\\u{7} room"),
            (
                .invalidPipeline(name: "jwks"),
                "'jwks' does not run: its configuration has errors; 'freshetctl check' prints them"
            ),
        ] {
            let service = service()
            service.change { $0.rollback = .failure(error) }
            try await check(
                "rollback jwks", service, status: .failure, printError: "freshetctl: \(words)\n",
                asked: ["rollback jwks before for \(caller)"])
        }
    }

    @Test("accept prints the current generation; a wrong digest is refused before any call")
    func accept() async throws {
        let generation = GenerationStatus(number: 13, size: 5, digest: "cd", committedAt: 1, path: "/x")
        let service = service()
        service.change { $0.rollback = .success(.init(generation: generation, replaced: 12)) }
        try await check(
            "accept jwks 5D3c91", service, printError: "generation 13 of 'jwks' is current, instead of 12\n",
            asked: ["accept jwks 5D3c91 for \(caller)"])
        for (error, words) in [
            (
                ControlError.noCandidate(name: "jwks"),
                "'jwks' has no rejected content; 'freshetctl status jwks' shows its state"
            ),
            (
                .otherCandidate(name: "jwks", digest: "ab"),
                "the rejected content of 'jwks' has changed: its digest is ab; 'freshetctl diff jwks --candidate' shows it"
            ),
        ] {
            let service = self.service()
            service.change { $0.rollback = .failure(error) }
            try await check(
                "accept jwks", service, status: .failure, printError: "freshetctl: \(words)\n",
                asked: ["accept jwks whatever it is for \(caller)"])
        }
        let transcript = Transcript()
        #expect(freshetctl("accept jwks xyz", transcript) == .usage)
        #expect(freshetctl("diff jwks 1 2 --candidate", transcript) == .usage)
        #expect(freshetctl("get jwks --candidate --generation 1", transcript) == .usage)
    }

    @Test("rejected content is shown by status, printed by get and compared by diff")
    func candidate() async throws {
        let service = service()
        service.change { script in
            script.history[0].size = 4
            script.contents[12] = Array("one\n".utf8)
            script.candidate = Array("two\n".utf8)
            script.pipelines["jwks"]?.candidate = CandidateStatus(
                digest: "5d3c", size: 4, rejectedAt: Transcript.now - 60_000_000, reason: "too few")
        }
        try await check("get jwks --candidate", service, output: "two\n")
        try await check(
            "diff jwks --candidate", service,
            output: "--- jwks 12\n+++ jwks candidate 5d3c\n@@ -1 +1 @@\n-one\n+two\n")
        try await check(
            "diff jwks --candidate --json", service,
            output:
                #"{"by":"line","candidate":"5d3c","from":12,"hunks":[{"lines":[{"change":"removed","text":"one"},{"change":"added","text":"two"}],"newStart":1,"oldStart":1}]}"#
                + "\n")
        let transcript = Transcript()
        try await withControlServer(service) { path in
            #expect(freshetctl("status jwks", transcript, socket: path) == .success)
        }
        #expect(transcript.output.contains(" Rejected: 4 B, 1min ago: too few\n"))
        #expect(
            transcript.output.contains(
                "           'freshetctl diff jwks --candidate' shows it, 'accept' publishes it\n"))
        service.change { $0.pipelines["jwks"]?.candidate = nil }
        try await check(
            "diff jwks --candidate", service, status: .failure,
            printError:
                "freshetctl: 'jwks' has no rejected content; 'freshetctl status jwks' shows its state\n"
        )
    }

    @Test("pin and unpin report the change and its effect")
    func pin() async throws {
        let generation = GenerationStatus(number: 11, size: 5, digest: "cd", committedAt: 1, path: "/x")
        for (changed, pin, unpin) in [
            (
                true, "'jwks' is pinned at generation 11",
                "'jwks' is no longer pinned; the next check, or 'freshetctl refresh jwks', publishes the content of the source"
            ),
            (
                false, "nothing changed: 'jwks' is pinned at generation 11 already",
                "nothing changed: 'jwks' is not pinned"
            ),
        ] {
            for (verb, words) in [("pin", pin), ("unpin", unpin)] {
                let service = service()
                service.change { $0.pin = .success(.init(generation: generation, changed: changed)) }
                try await check(
                    "\(verb) jwks", service, printError: words + "\n", asked: ["\(verb) jwks for \(caller)"])
            }
        }
    }

    @Test("a refresh reports that the source has content that is not published")
    func refresh() async throws {
        let service = service()
        service.change {
            $0.refresh["jwks"] = .success(
                RefreshResult(name: "jwks", outcome: .unchanged, durationUSec: 9_000, behind: true))
        }
        try await check(
            "refresh --wait jwks", service,
            output: "jwks: unchanged in 9 ms; the source has other content, which is not published\n",
            asked: ["refresh jwks wait"])
    }

    @Test(
        "a user without permission may list generations, but not choose one",
        arguments: ["rollback jwks", "accept jwks", "pin jwks", "unpin jwks"])
    func rights(line: String) async throws {
        try await check(
            line, rights: strangerRights, status: .notPermitted,
            printError: "freshetctl: permission denied: be root or a member of group freshet ('adduser NAME "
                + "freshet')\n")
    }

    @Test("status and list show that a copy is pinned or was rolled back")
    func held() async throws {
        func shown(_ change: (inout GenerationStatus) -> Void) async throws -> String {
            let service = ScriptedService(["jwks"])
            var generation = GenerationStatus(number: 3, size: 5, digest: "cd", committedAt: 1, path: "/x")
            change(&generation)
            service.change { [generation] in $0.pipelines["jwks"]?.generation = generation }
            let transcript = Transcript()
            try await withControlServer(service) { path in
                #expect(freshetctl("status jwks", transcript, socket: path) == .success)
                #expect(freshetctl("list --no-legend", transcript, socket: path) == .success)
            }
            return transcript.output
        }
        let plain = try await shown { _ in }
        #expect(!plain.contains("Pinned: ") && plain.contains(" 3 5 B"))
        let rolledBack = try await shown { $0.behind = true }
        #expect(
            rolledBack.contains(
                " Rollback: the source has other content; its next change replaces this copy\n"))
        #expect(rolledBack.contains(" 3 (rolled back) "))
        let pinned = try await shown { $0.pinnedSince = Transcript.now - 60_000_000 }
        #expect(pinned.contains("   Pinned: since Sat 2026-11-21 02:38:23 UTC; 1min ago\n"))
        #expect(pinned.contains(" 3 (pinned) "))
        let both = try await shown {
            $0.pinnedSince = Transcript.now
            $0.behind = true
        }
        #expect(both.contains("Pinned: since Sat 2026-11-21 02:39:23 UTC; just now; the source has other content\n"))
        let signed = try await shown { $0.comment = "version 1" }
        #expect(signed.contains("   Signed: version 1\n") && !plain.contains("Signed"))
    }
}
