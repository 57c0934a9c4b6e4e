import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import Glibc
import Logging
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Hooks of a daemon")
struct HookSchedulerTests {
    /// Configures a pipeline that copies a file and has a shell command as its hook.
    private func configure(_ home: Home, _ script: String, timeout: String = "1h", more: String = "") throws {
        try home.configure(
            "a",
            """
            source: {file: \(home.path)/data}
            refresh: {on: [start], min-interval: 0}
            cache: {file: a.txt, keep: 3}
            on-change:
            - exec: [/bin/sh, -c, '\(script)', hook, "two words"]
              timeout: \(timeout)
            \(more)
            """)
    }

    private func nothingPending(_ client: ControlClient) -> Bool {
        guard let status = try? client.status("a") else { return false }
        return status.hooks == nil
    }

    private func pendingHooks(_ client: ControlClient) -> [PendingHook] { (try? client.status("a"))?.hooks ?? [] }

    private func notifications(_ home: Home) -> [String] {
        home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? []
    }

    @Test("a hook runs once for each change, with its own file and a clean environment, and not for an unchanged run")
    func notifies() async throws {
        let home = try Home()
        // Each run appends one line: its input, then the mode of the input file.
        try configure(
            home,
            #"cat "$FRESHET_CHANGE" >> \#(home.path)/told; stat -c %a "$FRESHET_CHANGE" >> \#(home.path)/modes; "#
                + #"env > \#(home.path)/env; echo "$#:$1:$(pwd)" > \#(home.path)/given"#)
        try home.write("one", to: "data")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { notifications(home).count == 1 })
            try home.write("two!", to: "data")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { notifications(home).count == 2 })
            #expect(try client.refresh("a").outcome == .unchanged)
            _ = try client.rollBack("a")
            #expect(eventually { notifications(home).count == 3 })
            #expect(eventually { log.lines.count { $0.message == "the hook succeeded" } == 3 })
            #expect(try client.status("a").hooks == nil)
        }
        let lines = notifications(home)
        try #require(lines.count == 3)
        #expect(lines[0].contains(#""pipeline":"a""#) && lines[0].contains(#""number":1"#))
        #expect(!lines[0].contains("previous"))
        #expect(
            lines[1].contains(#""causes":"operator""#)
                && lines[1].contains(#""difference":{"bytes":1,"lines":["@@ -1 +1 @@""#))
        #expect(lines[1].contains("\(home.path)/cache/below/generations/a/1-"))
        #expect(lines[2].contains(#""causes":"rollback""#) && lines[2].contains(#""difference":{"bytes":-1,"lines""#))
        #expect(home.text("modes") == "600\n600\n600\n")
        #expect(home.text("given") == "1:two words:/\n")
        let names = Set((home.text("env") ?? "").split(separator: "\n").map { $0.prefix { $0 != "=" } })
        // The shell sets PWD and the other variables itself.
        #expect(
            names.subtracting(["PWD", "SHLVL", "_", "OLDPWD"]).subtracting(["HOME"])
                == ["PATH", "LANG", "FRESHET_CHANGE", "FRESHET_PIPELINE"])
        #expect(TemporaryDirectory.names(home.path + "/state/hooks") == [])
    }

    @Test("a failed hook is pending: it is shown, logged, stored and run after a restart; the pipeline is not affected")
    func pending() async throws {
        let home = try Home()
        try configure(home, "echo out; echo why >&2; test -e \(home.path)/works")
        try home.write("one", to: "data")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { pendingHooks(client).first.map { $0.attempts >= 2 } ?? false })
            let status = try client.status("a")
            let pending = try #require(status.hooks?.first)
            #expect(pending.error == "/bin/sh exited with status 1: why" && pending.generation == 1)
            #expect(pending.hook.hasPrefix("/bin/sh -c ") && pending.since != nil)
            #expect(status.state == .loaded && status.failure == nil && status.lastRun?.number == 1)
            #expect(try client.daemon().failingHooks == 1)
        }
        let failures = log.lines.filter { $0.message == "the hook failed; Freshet retries it: {error}" }
        #expect(failures.count { $0.level == .warning } == 1 && failures.count >= 2)
        #expect(log.lines.contains { $0.message == "hook output: {output}" && $0.metadata["output"] == "out" })
        try home.write("", to: "works")
        let again = LogRecorder()
        _ = try await withDaemon(home, again) { client in
            #expect(eventually { again.lines.contains { $0.message == "the hook succeeded" } })
            #expect(eventually { nothingPending(client) })
            let failing = try client.daemon().failingHooks
            #expect(failing == nil)
        }
        // No hook is pending any more.
        let last = LogRecorder()
        _ = try await withDaemon(home, last) { client in _ = try client.refresh("a") }
        #expect(!last.lines.contains { $0.message == "the hook succeeded" })
    }

    @Test("a timeout and a program that cannot be run are failures that name the reason")
    func errors() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try home.write("#!/bin/sh\n", to: "loose")
        try #require(chmod(home.path + "/loose", 0o777) == 0)
        try configure(
            home, "sleep 100 & sleep 100", timeout: "1s",
            more: "- exec: [\(home.path)/loose]\n- exec: [/nowhere/hook]\n- exec: [/etc/passwd]")
        _ = try await withDaemon(home) { client in
            #expect(eventually { pendingHooks(client).compactMap(\.error).count == 4 })
            let errors = pendingHooks(client).compactMap(\.error)
            try #require(errors.count == 4)
            #expect(errors[0] == "/bin/sh was stopped: it took longer than 1 s")
            #expect(errors[1].contains("is not run: others than its owner may write to"))
            #expect(errors[2].contains("/nowhere/hook is not run: /nowhere is not there"))
            #expect(errors[3] == "could not run /etc/passwd: Permission denied")
        }
    }

    @Test("a new hook is not pending for the existing copy; changes of the hook do not affect runs of the pipeline")
    func new() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try home.configure("a", "source: {file: \(home.path)/data}\ncache: {file: a.txt}\n")
        _ = try await withDaemon(home) { client in
            #expect(eventually { home.copy("a.txt") == "one" })
            #expect(eventually { (try? client.status("a"))?.state == .loaded })
            try configure(home, "echo run >> \(home.path)/told")
            #expect(try client.reload(configurationOnly: true).summary.changed == ["a"])
            #expect(try client.refresh("a").outcome == .unchanged)
            try home.write("two", to: "data")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { notifications(home) == ["run"] })
        }
    }

    @Test("with a new index, hooks run once for the existing copies, because their last runs are unknown")
    func forgotten() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo run >> \(home.path)/told")
        _ = try await withDaemon(home) { client in
            #expect(eventually { notifications(home).count == 1 })
            #expect(eventually { nothingPending(client) })
        }
        for suffix in ["", "-wal", "-shm"] { unlink(home.path + "/state/index.sqlite\(suffix)") }
        for _ in 1...2 {
            _ = try await withDaemon(home) { client in
                #expect(eventually { nothingPending(client) })
                #expect(notifications(home).count == 2)
            }
        }
    }

    @Test("removing a pipeline removes its pending hooks; if the pipeline is added again, its hooks are new")
    func removed() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo run >> \(home.path)/told; exit 1")
        _ = try await withDaemon(home) { client in
            #expect(eventually { pendingHooks(client).first?.error != nil })
            try home.configure("a", nil)
            #expect(try client.reload(configurationOnly: true).summary.removed == ["a"])
            let failing = try client.daemon().failingHooks
            #expect(failing == nil)
            // The hook hangs, so that the first run of the pipeline after its return adds no failure.
            try configure(home, "sleep 1000")
            #expect(try client.reload(configurationOnly: true).summary.added == ["a"])
            #expect(pendingHooks(client).allSatisfy { $0.error == nil && $0.attempts == 0 })
            #expect(eventually { (try? client.status("a"))?.lastRun != nil })
            #expect(pendingHooks(client).allSatisfy { $0.error == nil && $0.attempts == 0 })
        }
    }

    @Test("when the daemon ends, a running hook is killed with its process group and stays pending without an attempt")
    func ended() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(
            home, "echo $$ >> \(home.path)/told; test -e \(home.path)/works || { sleep 1000 & wait; }")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { _ in #expect(eventually { notifications(home).count == 1 }) }
        let group = try #require(notifications(home).first.flatMap { pid_t($0) })
        // The killed processes still have to be reaped by their new parent.
        #expect(await eventually { kill(-group, 0) != 0 })
        #expect(log.lines.filter { $0.message.hasPrefix("the hook failed") }.map { "\($0)" } == [])
        try home.write("", to: "works")
        _ = try await withDaemon(home) { client in
            #expect(eventually { notifications(home).count == 2 })
            #expect(eventually { nothingPending(client) })
        }
    }

    @Test("--once runs the hooks of changed pipelines and waits; a failed hook sets the exit status and is pending")
    func once() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo $FRESHET_PIPELINE >> \(home.path)/told; test -e \(home.path)/works")
        var options = home.options
        options.once = true
        let first = try await run(options)
        #expect(first == .failure)
        #expect(notifications(home) == ["a"])
        try home.write("", to: "works")
        let second = try await run(options)
        #expect(second == .success)
        #expect(notifications(home) == ["a", "a"])
        let third = try await run(options)
        #expect(third == .success)
        #expect(notifications(home) == ["a", "a"])
    }
}

/// Runs a daemon until it ends.
private func run(_ options: DaemonOptions) async throws -> DaemonExit {
    let loop = try DaemonLoop.shared.get()
    let daemon = try Daemon(options: options, loop: loop, log: LogRecorder().logger)
    return await Task(executorPreference: loop) { await daemon.run() }.value
}

@Suite("Output of programs")
struct ProgramOutputTests {
    @Test("output is split into lines, whatever its pieces are")
    func lines() {
        var output = ProgramOutput()
        #expect(output.take("one\r\n\ntw".utf8) == ["one"])
        #expect(output.take("o\nthree".utf8) == ["two"])
        #expect(output.finish() == "three")
        #expect(output.finish() == nil && output.leftOut == 0)
    }

    @Test("the number and the length of lines are limited; further lines are counted and use no memory")
    func limits() {
        var output = ProgramOutput()
        let longest = String(repeating: "x", count: ProgramOutput.lineBytes)
        #expect(output.take("\(longest)\n\(longest)x\n".utf8) == [longest, longest + "…"])
        let more = output.take(String(repeating: "y\n", count: ProgramOutput.mostLines + 5).utf8)
        #expect(more.count == ProgramOutput.mostLines - 2)
        #expect(output.take("z".utf8) == [] && output.finish() == nil)
        #expect(output.leftOut == 8)
    }
}
