import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Programs of check.exec")
struct CheckExecTests {
    /// Configures a pipeline that copies a file and has a shell command as its check.
    private func configure(_ home: Home, _ script: String, timeout: String = "30s") throws {
        try home.configure(
            "a",
            """
            source: {file: \(home.path)/data}
            refresh: {on: [start], min-interval: 0, retry: {from: 365d, to: 365d}}
            check: {exec: [/bin/sh, -c, '\(script)', check, "two words"], timeout: \(timeout)}
            cache: {file: a.txt}
            """)
    }

    @Test("the program gets the candidate in its own file, in a clean environment; accepted content becomes the copy")
    func accepts() async throws {
        let home = try Home()
        try configure(
            home,
            #"cat "$FRESHET_CANDIDATE" > \#(home.path)/seen; stat -c %a "$FRESHET_CANDIDATE" >> \#(home.path)/seen; "#
                + #"env > \#(home.path)/env; echo "$#:$1:$(pwd):$FRESHET_PIPELINE" > \#(home.path)/given"#)
        try home.write("one\n", to: "data")
        _ = try await withDaemon(home) { client in
            #expect(eventually { home.copy("a.txt") == "one\n" })
            #expect(eventually { (try? client.status("a"))?.state == .loaded })
        }
        #expect(home.text("seen") == "one\n600\n")
        #expect(home.text("given") == "1:two words:/:a\n")
        let names = Set((home.text("env") ?? "").split(separator: "\n").map { $0.prefix { $0 != "=" } })
        #expect(
            names.subtracting(["PWD", "SHLVL", "_", "OLDPWD", "HOME"])
                == ["PATH", "LANG", "FRESHET_CANDIDATE", "FRESHET_PIPELINE"])
        #expect(TemporaryDirectory.names(home.path + "/state/checks") == [])
    }

    @Test("rejected content is kept with the first line of the output; the whole output is logged")
    func refuses() async throws {
        let home = try Home()
        try configure(home, #"grep -q good "$FRESHET_CANDIDATE" || { echo not good; echo at all >&2; exit 3; }"#)
        try home.write("good\n", to: "data")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { home.copy("a.txt") == "good\n" })
            try home.write("bad\n", to: "data")
            let result = try client.refresh("a")
            #expect(result.failure == "check.exec: /bin/sh rejected the content with exit status 3: not good")
            #expect(home.copy("a.txt") == "good\n")
            #expect(try client.status("a").candidate?.size == 4)
        }
        let logged = log.lines.filter { $0.message == "check output: {output}" }
        #expect(logged.map { $0.metadata["output"] } == ["not good", "at all"])
        #expect(
            logged.allSatisfy { $0.metadata["pipeline"] == "a" && $0.metadata["check"]?.hasPrefix("/bin/sh") == true })
    }

    @Test("a program that is killed decides nothing: no candidate is kept, and the copy stays")
    func killed() async throws {
        let home = try Home()
        try home.write("one\n", to: "data")
        try configure(home, "kill -9 $$")
        _ = try await withDaemon(home) { client in
            #expect(
                eventually {
                    (try? client.status("a"))?.failure?.message == "check.exec: /bin/sh was ended by signal 9"
                }
            )
            #expect(try client.status("a").candidate == nil)
            try configure(home, "sleep 100 & sleep 100", timeout: "1s")
            _ = try client.reload(configurationOnly: true)
            #expect(try client.refresh("a").failure == "check.exec: /bin/sh was stopped: it took longer than 1 s")
            #expect(try client.status("a").candidate == nil)
            #expect(home.copy("a.txt") == nil)
        }
    }

    @Test("a program that others can change is not run, and the reload warns about it")
    func notTrusted() async throws {
        let home = try Home()
        try home.write("one\n", to: "data")
        try home.write("#!/bin/sh\ntouch \(home.path)/ran\n", to: "loose")
        try #require(chmod(home.path + "/loose", 0o777) == 0)
        try home.configure(
            "a",
            "source: {file: \(home.path)/data}\ncheck: {exec: [\(home.path)/loose]}\ncache: {file: a.txt}\n")
        _ = try await withDaemon(home) { client in
            #expect(
                eventually {
                    (try? client.status("a"))?.failure?.message.contains("/loose is not run: others than its owner")
                        == true
                })
            let warnings = try client.reload(configurationOnly: true).diagnostics
            #expect(warnings.contains { $0.message.hasPrefix("the check cannot be run: others than its owner") })
        }
        #expect(home.text("ran") == nil && home.copy("a.txt") == nil)
    }

    /// More content than is kept in memory.
    private static let long = String(repeating: "0123456789abcde\n", count: 1 << 17)

    @Test("the program reads a long candidate in place, and must not change it")
    func long() async throws {
        let home = try Home()
        try home.write(Self.long, to: "data")
        try configure(home, #"echo "$FRESHET_CANDIDATE" > \#(home.path)/seen; wc -c < "$FRESHET_CANDIDATE""#)
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { (try? client.status("a"))?.state == .loaded })
            #expect(home.text("seen")?.hasPrefix("\(home.path)/cache/below/generations/a/.new-") == true)
            #expect(eventually { log.lines.contains { $0.metadata["output"] == "2097152" } })
            try configure(home, #"printf X | dd of="$FRESHET_CANDIDATE" conv=notrunc status=none"#)
            _ = try client.reload(configurationOnly: true)
            try home.write(Self.long.replacing("0", with: "1"), to: "data")
            let result = try client.refresh("a")
            #expect(result.failure == "check.exec: /bin/sh changed the candidate; a check may only read it")
            #expect(try client.status("a").candidate == nil)
            #expect(home.copy("a.txt")?.hasPrefix("0123") == true)
        }
    }
    /// A body whose file has the same attributes as before, but other content.
    private final class Changed: PendingBody {
        let path: String?
        init(_ path: String) { self.path = path }

        func append(_ bytes: [UInt8]) async throws(RunFailure) {}
        func discard() async {}
        func digest() async throws(RunFailure) -> String { "" }
        func isIntact() async throws(RunFailure) -> Bool { false }
        func reduce<Result: Sendable>(
            into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
        ) async throws(RunFailure) -> Result { initial }
    }

    @Test(
        "a change that leaves the times of the file the same, such as one through a memory map, is detected"
    )
    func unseen() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("one\n", to: "candidate")
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let workers = WorkerPool()
        let programs = TrustedPrograms(
            commands: CommandRunner(loop, workers: workers), workers: workers,
            trust: PathTrust(user: geteuid(), isPersonal: true))
        let files = ProgramInputFiles(directory: directory.path, prefix: "handed-", suffix: "")
        let inspector = CandidateInspector(programs, files) { _, _, _ in }
        let error = await #expect(throws: FetchError.self) {
            try await inspector.inspect(
                .kept(StoredBody(Changed("\(directory.path)/candidate"), size: 4)),
                of: PipelineDefinition(name: "a", source: .file("/dev/null"), cache: CacheRules(file: "a")),
                by: InspectionRule(["/bin/true"]))
        }
        #expect(
            error == .failed(RunFailure(.local, "/bin/true changed the candidate; a check may only read it")))
    }
}
