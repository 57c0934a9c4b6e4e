import ArgumentParser
import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

/// `is-fresh`, `wait` and `logs`.
@Suite(.serialized, .hangLimit) struct AskVerbTests {
    private func service(_ change: (inout PipelineStatus) -> Void = { _ in }) -> ScriptedService {
        let service = ScriptedService(["flags", "jwks"])
        service.change { script in
            for name in script.pipelines.keys { script.pipelines[name]?.freshness = .fresh }
            if var jwks = script.pipelines["jwks"] {
                change(&jwks)
                script.pipelines["jwks"] = jwks
            }
        }
        return service
    }

    // MARK: is-fresh

    @Test("is-fresh prints fresh for each pipeline, and succeeds")
    func fresh() async throws {
        try await expect("is-fresh jwks flags", of: service(), output: "fresh\nfresh\n")
    }

    @Test("is-fresh fails if a copy is not fresh, and prints its word")
    func notFresh() async throws {
        try await expect(
            "is-fresh flags jwks", of: service { $0.freshness = .expired }, status: .failure, output: "fresh\nexpired\n"
        )
        try await expect("is-fresh jwks", of: service { $0.freshness = nil }, status: .failure, output: "stale\n")
        try await expect("is-fresh jwks", of: service { $0.generation = nil }, status: .failure, output: "none\n")
        try await expect(
            "is-fresh jwks",
            of: service {
                $0.withdrawn = WithdrawnCopy(number: 3, size: 1, digest: "ab", committedAt: 1, since: 2)
                $0.generation = nil
            }, status: .failure, output: "withdrawn\n")
    }

    @Test("is-fresh --quiet prints nothing")
    func quiet() async throws {
        try await expect("is-fresh --quiet jwks", of: service())
        try await expect("is-fresh --quiet jwks", of: service { $0.freshness = .stale }, status: .failure)
    }

    @Test("is-fresh of an unknown name is an error, and of a pattern without a match a failure")
    func noSuch() async throws {
        try await expect(
            "is-fresh jkws", of: service(), status: .failure,
            printError: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
        try await expect("is-fresh x*", of: service(), status: .failure)
        try await expect("is-fresh j*", of: service(), output: "fresh\n")
    }

    // MARK: wait

    @Test("wait ends immediately if the goal is reached already")
    func already() async throws {
        try await expect("wait jwks", of: service(), printError: "jwks: loaded, fresh, generation 3\n")
        try await expect("wait jwks --state loaded -q", of: service())
        try await expect("wait jwks --generation 2 -q", of: service())
        try await expect("wait * --state failed,loaded -q", of: service())
    }

    @Test("wait ends at the event that reaches the goal, and not at another event")
    func event() async throws {
        let service = service { $0.freshness = .stale }
        let transcript = Transcript()
        let run = RunStatus(number: 13, started: 1, durationUSec: 1, outcome: .unchanged)
        // The daemon publishes two events; the goal is reached after the second.
        let publisher = Task { [events = service.events] in
            while !events.isObserved { await Task.yield() }
            events.publish(.runEnded(run, of: "jwks", at: 1))
            service.change { $0.pipelines["jwks"]?.freshness = .fresh }
            events.publish(.runEnded(run, of: "jwks", at: 2))
        }
        try await withControlServer(service) { path in
            #expect(freshetctl("wait jwks flags --fresh", transcript, socket: path) == .success)
        }
        await publisher.value
        #expect(transcript.printError.hasSuffix("jwks: loaded, fresh, generation 3\n"))
    }

    @Test("wait ends at its timeout with status 75, and prints the states")
    func timeout() async throws {
        let service = service {
            $0.state = .failed
            $0.freshness = .stale
            $0.failure = FailureStatus(message: "no route to host", since: 1, attempts: 2)
        }
        var pipelines: [PipelineStatus] = []
        for name in ["flags", "jwks"] { pipelines += await [service.pipeline(name)].compactMap { $0 } }
        try await expect(
            "wait jwks flags --timeout 20ms --json", of: service, status: .tryLater,
            output: ControlJSON.text(of: ControlMessage.Pipelines(pipelines: pipelines)) + "\n",
            printError: """
                freshetctl: not fresh after 20 ms:
                jwks: failed, stale, generation 3: no route to host

                """)
    }

    @Test("wait for an unknown pipeline ends with status 1")
    func waitForNobody() async throws {
        try await expect(
            "wait jkws", of: service(), status: .failure,
            printError: "freshetctl: there is no pipeline 'jkws'; did you mean 'jwks'?\n")
    }

    @Test("wait continues after a silence in which the daemon closes idle connections")
    func silence() async throws {
        let service = service()
        let transcript = Transcript()
        try await withControlServer(service, silence: .milliseconds(50)) { path in
            Task {
                while !service.events.isObserved { await Task.yield() }
                // A later connection is closed, so all earlier ones are closed too.
                Self.waitForEnd(of: path)
                service.change { $0.pipelines["jwks"]?.state = .failed }
                let run = RunStatus(number: 13, started: 1, durationUSec: 1, outcome: .changed)
                service.events.publish(.runEnded(run, of: "jwks", at: 1))
            }
            #expect(freshetctl("wait jwks --state failed", transcript, socket: path) == .success)
        }
        #expect(transcript.printError.contains("jwks: failed"))
    }

    /// Connects, sends nothing, and returns when the connection is closed.
    private static func waitForEnd(of path: String) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
        }
        var byte: UInt8 = 0
        _ = read(descriptor, &byte, 1)
    }

    @Test("wait draws its goal on a terminal, and erases the line")
    func drawn() async throws {
        let service = service { $0.freshness = .stale }
        let transcript = Transcript()
        try await withControlServer(service) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path])
            context.errorColumns = 80
            #expect(Freshetctl.run(["wait", "jwks", "--timeout", "400ms"], context) == .tryLater)
        }
        #expect(
            transcript.printError.hasPrefix("\r\u{1B}[Kwaits until fresh; jwks: loaded"),
            "\(transcript.printError.debugDescription)")
        #expect(transcript.printError.contains("\r\u{1B}[Kfreshetctl: not fresh after 400 ms:"))
    }

    @Test(
        "a duration has the syntax of systemd.time(7)",
        arguments: [
            ("90", 90_000_000), ("30s", 30_000_000), ("1h 30min", 5_400_000_000), ("20ms", 20_000),
            ("2d", 172_800_000_000),
            ("0", 0),
        ] as [(String, Int64)])
    func spans(text: String, expected: Int64) { #expect(DurationArgument(argument: text)?.microseconds == expected) }

    @Test(
        "an invalid duration is rejected",
        arguments: ["", "s", "1x", "-1s", "1.5s", "9223372036854775807w", "10 parsecs"])
    func noSpans(text: String) { #expect(DurationArgument(argument: text) == nil) }

    @Test("infinity means an unlimited time")
    func infinity() { #expect(DurationArgument(argument: "infinity")?.duration == nil) }

    // MARK: logs

    /// The program that `logs` executes.
    private func becomes(
        _ line: String, environment: [String: String] = ["FRESHET_SOCKET": "/nonexistent/s"],
        existing: Set<String> = [],
        isTerminal: Bool = false
    ) -> [String] {
        let transcript = Transcript()
        var context = transcript.context(
            environment: environment.merging(["PATH": "/sbin:/usr/bin"]) { $1 }, existing: existing,
            executable: ["/usr/bin/journalctl"])
        context.isTerminal = isTerminal
        #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == .failure)
        #expect(transcript.printError == "freshetctl: cannot execute '/usr/bin/journalctl': Exec format error\n")
        return transcript.executed
    }

    @Test("logs executes journalctl with the pipelines' matches, or with the unit only")
    func logs() {
        #expect(becomes("logs") == ["/usr/bin/journalctl", "--unit=freshetd.service"])
        #expect(
            becomes("logs a b -f -n 20 --since -1h --until now -x -q --no-pager --json") == [
                "/usr/bin/journalctl", "--no-pager", "--quiet", "--output=json", "--follow", "--lines=20",
                "--since=-1h",
                "--until=now", "--catalog", "--unit=freshetd.service", "FRESHET_PIPELINE=a", "FRESHET_PIPELINE=b",
            ])
        #expect(becomes("logs a -n20") == becomes("logs a -n 20"))
        #expect(becomes("logs a -n20").contains("--lines=20"))
        #expect(becomes("logs a", isTerminal: true).contains("--pager-end"))
        #expect(!becomes("logs a -f", isTerminal: true).contains("--pager-end"))
    }

    @Test("logs of a user's own daemon reads the user's journal")
    func ownLogs() {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/home/a"]
        #expect(
            becomes("logs a", environment: environment, existing: ["/home/a/.config/freshet"]) == [
                "/usr/bin/journalctl", "--user", "--user-unit=freshetd.service", "FRESHET_PIPELINE=a",
            ])
        #expect(
            becomes("logs a", environment: environment, existing: ["/run/freshet/io.freshet.Control"])
                == ["/usr/bin/journalctl", "--unit=freshetd.service", "FRESHET_PIPELINE=a"])
    }

    @Test("without journalctl, logs says where the daemon writes")
    func noJournal() {
        let transcript = Transcript()
        #expect(freshetctl("logs", transcript) == .failure)
        #expect(transcript.printError.contains("journalctl is not installed") && transcript.executed.isEmpty)
    }

    @Test("logs of an unknown name suggests a similar name, and shows the entries")
    func formerName() async throws {
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            let context = transcript.context(
                environment: ["FRESHET_SOCKET": path, "PATH": "/bin"], executable: ["/bin/journalctl"])
            #expect(Freshetctl.run(["logs", "jkws"], context) == .failure)
        }
        #expect(transcript.printError.hasPrefix("There is no pipeline 'jkws' now; did you mean 'jwks'?\n"))
        #expect(transcript.executed.last == "FRESHET_PIPELINE=jkws")
    }

    /// The output of `status` for a daemon at the socket of the service.
    private func statusTail(
        _ result: ChildResult, _ seen: @escaping @Sendable ([String]) -> Void = { _ in }
    ) async throws -> String {
        let transcript = Transcript()
        try await withControlServer(service()) { path in
            var context = transcript.context(environment: ["PATH": "/bin"], executable: ["/bin/journalctl"])
            context.environment["XDG_RUNTIME_DIR"] = String(path.dropLast("/freshet/io.freshet.Control".count))
            context.child = { _, arguments, streams in
                #expect(streams == .collected)
                seen(arguments)
                return result
            }
            let session = Session(
                context: context, options: SessionOptions(socket: path))
            let lines = Journal.tail(of: "jwks", 10, isPersonal: false, session)
            context.output(lines.joined(separator: "\n"))
        }
        return transcript.output
    }

    @Test("status shows the last lines of the journal, harmless and without the lines of journalctl itself")
    func tail() async throws {
        let output =
            "-- Journal begins --\nNov 22 04:00:00 host freshetd[1]: jwks: changed\u{1B}[2J\n-- No entries --\n"
        let shown = try await statusTail(.ended(status: 0, output: output)) { arguments in
            #expect(
                arguments == [
                    "--no-pager", "--lines=10", "--output=short", "--unit=freshetd.service", "FRESHET_PIPELINE=jwks",
                ])
        }
        #expect(shown == "Nov 22 04:00:00 host freshetd[1]: jwks: changed\\u{1b}[2J")
    }

    @Test("a missing permission for the journal names the group; a missing journal is not an error")
    func forbiddenTail() async throws {
        let errorOutput = "No journal files were opened due to insufficient permissions.\n"
        #expect(
            try await statusTail(.ended(status: 1, errorOutput: errorOutput))
                == "Permission denied for the journal: be root or a member of group systemd-journal or adm.")
        #expect(try await statusTail(.ended(status: 1, errorOutput: "No journal files were found.\n")) == "")
        #expect(try await statusTail(.failed("Permission denied")) == "")
    }
}
