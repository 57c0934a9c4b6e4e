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
    /// A pipeline whose copy is the text of a file, with a hook that is a line of shell.
    private func configure(_ home: Home, _ script: String, timeout: String = "30s", more: String = "") throws {
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

    private func owesNothing(_ client: ControlClient) -> Bool {
        guard let status = try? client.status("a") else { return false }
        return status.hooks == nil
    }

    private func debts(_ client: ControlClient) -> [PendingHook] { (try? client.status("a"))?.hooks ?? [] }

    private func told(_ home: Home) -> [String] {
        home.text("told").map { $0.split(separator: "\n").map(String.init) } ?? []
    }

    @Test("each change is told once, in a file of its own, in a clean environment; a check without news is not")
    func tells() async throws {
        let home = try Home()
        // One line a run: what it was told, then what it was given besides.
        try configure(
            home,
            #"cat "$FRESHET_CHANGE" >> \#(home.path)/told; stat -c %a "$FRESHET_CHANGE" >> \#(home.path)/modes; "#
                + #"env > \#(home.path)/env; echo "$#:$1:$(pwd)" > \#(home.path)/given"#)
        try home.write("one", to: "data")
        let log = LogBook()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { told(home).count == 1 })
            try home.write("two!", to: "data")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { told(home).count == 2 })
            #expect(try client.refresh("a").outcome == .unchanged)
            _ = try client.rollBack("a")
            #expect(eventually { told(home).count == 3 })
            #expect(eventually { log.lines.count { $0.message == "the hook has run" } == 3 })
            #expect(try client.status("a").hooks == nil)
        }
        let lines = told(home)
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
        // PWD and its like are the shell's own.
        #expect(
            names.subtracting(["PWD", "SHLVL", "_", "OLDPWD"]).subtracting(["HOME"])
                == ["PATH", "LANG", "FRESHET_CHANGE", "FRESHET_PIPELINE"])
        #expect(TemporaryDirectory.names(home.path + "/state/hooks") == [])
    }

    @Test("one that fails is owed: shown, told, remembered, and done after a restart; the pipeline is not touched")
    func owed() async throws {
        let home = try Home()
        try configure(home, "echo out; echo why >&2; test -e \(home.path)/works")
        try home.write("one", to: "data")
        let log = LogBook()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { debts(client).first.map { $0.attempts >= 2 } ?? false })
            let status = try client.status("a")
            let debt = try #require(status.hooks?.first)
            #expect(debt.error == "/bin/sh exited with status 1: why" && debt.generation == 1)
            #expect(debt.hook.hasPrefix("/bin/sh -c ") && debt.since != nil)
            #expect(status.state == .loaded && status.failure == nil && status.lastRun?.number == 1)
            #expect(try client.daemon().failingHooks == 1)
        }
        let failures = log.lines.filter { $0.message == "the hook failed, and is tried again: {error}" }
        #expect(failures.count { $0.level == .warning } == 1 && failures.count >= 2)
        #expect(log.lines.contains { $0.message == "the hook says: {output}" && $0.metadata["output"] == "out" })
        try home.write("", to: "works")
        let again = LogBook()
        _ = try await withDaemon(home, again) { client in
            #expect(eventually { again.lines.contains { $0.message == "the hook has run" } })
            #expect(eventually { owesNothing(client) })
            let failing = try client.daemon().failingHooks
            #expect(failing == nil)
        }
        // Nothing is owed any more.
        let last = LogBook()
        _ = try await withDaemon(home, last) { client in _ = try client.refresh("a") }
        #expect(!last.lines.contains { $0.message == "the hook has run" })
    }

    @Test("a time-out, and a program that may not or cannot be run, are failures that name the reason")
    func faults() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try home.write("#!/bin/sh\n", to: "loose")
        try #require(chmod(home.path + "/loose", 0o777) == 0)
        try configure(
            home, "sleep 100 & sleep 100", timeout: "1s",
            more: "- exec: [\(home.path)/loose]\n- exec: [/nowhere/hook]\n- exec: [/etc/passwd]")
        _ = try await withDaemon(home) { client in
            #expect(eventually { debts(client).compactMap(\.error).count == 4 })
            let errors = debts(client).compactMap(\.error)
            try #require(errors.count == 4)
            #expect(errors[0] == "/bin/sh was ended, as it took longer than 1 s")
            #expect(errors[1].contains("is not run: others than its owner may write to"))
            #expect(errors[2].contains("/nowhere/hook is not run: /nowhere is not there"))
            #expect(errors[3] == "could not run /etc/passwd: Permission denied")
        }
    }

    @Test("a hook that is new owes nothing of what is there; changes of the hook touch no run of the pipeline")
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
            #expect(eventually { told(home) == ["run"] })
        }
    }

    @Test("with a new index, of which nobody knows what hooks were told, they are told once of what is there")
    func forgotten() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo run >> \(home.path)/told")
        _ = try await withDaemon(home) { client in
            #expect(eventually { told(home).count == 1 })
            #expect(eventually { owesNothing(client) })
        }
        for suffix in ["", "-wal", "-shm"] { unlink(home.path + "/state/index.sqlite\(suffix)") }
        for _ in 1...2 {
            _ = try await withDaemon(home) { client in
                #expect(eventually { owesNothing(client) })
                #expect(told(home).count == 2)
            }
        }
    }

    @Test("a pipeline that was removed takes along what was owed of it: if it comes back its hooks are new")
    func removed() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo run >> \(home.path)/told; exit 1")
        _ = try await withDaemon(home) { client in
            #expect(eventually { debts(client).first?.error != nil })
            try home.configure("a", nil)
            #expect(try client.reload(configurationOnly: true).summary.removed == ["a"])
            let failing = try client.daemon().failingHooks
            #expect(failing == nil)
            // It hangs, so that the first run of the pipeline that comes back adds no failure of its own.
            try configure(home, "sleep 1000")
            #expect(try client.reload(configurationOnly: true).summary.added == ["a"])
            #expect(debts(client).allSatisfy { $0.error == nil && $0.attempts == 0 })
            #expect(eventually { (try? client.status("a"))?.lastRun != nil })
            #expect(debts(client).allSatisfy { $0.error == nil && $0.attempts == 0 })
        }
    }

    @Test("at the end of the daemon one that runs is ended with its group, and owed without an attempt counted")
    func ended() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(
            home, "echo $$ >> \(home.path)/told; test -e \(home.path)/works || { sleep 1000 & wait; }")
        let log = LogBook()
        _ = try await withDaemon(home, log) { _ in #expect(eventually { told(home).count == 1 }) }
        let group = try #require(told(home).first.flatMap { pid_t($0) })
        // Those that were killed a moment ago are still to be reaped, by whoever has them now.
        #expect(await eventually { kill(-group, 0) != 0 })
        #expect(!log.lines.contains { $0.message.hasPrefix("the hook failed") })
        try home.write("", to: "works")
        _ = try await withDaemon(home) { client in
            #expect(eventually { told(home).count == 2 })
            #expect(eventually { owesNothing(client) })
        }
    }

    @Test("--once runs the hooks of what it changed and awaits them; one that fails is an exit status, and owed")
    func once() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        try configure(home, "echo $FRESHET_PIPELINE >> \(home.path)/told; test -e \(home.path)/works")
        var options = home.options
        options.once = true
        let first = try await run(options)
        #expect(first == .failure)
        #expect(told(home) == ["a"])
        try home.write("", to: "works")
        let second = try await run(options)
        #expect(second == .success)
        #expect(told(home) == ["a", "a"])
        let third = try await run(options)
        #expect(third == .success)
        #expect(told(home) == ["a", "a"])
    }
}

/// A daemon's whole life.
private func run(_ options: DaemonOptions) async throws -> DaemonExit {
    let loop = try EventLoop()
    try loop.runInThread(named: "test-loop")
    defer { loop.stop() }
    let daemon = try Supervisor(options: options, loop: loop, log: LogBook().logger)
    return await Task(executorPreference: loop) { await daemon.run() }.value
}

@Suite("What a hook writes")
struct ProgramOutputTests {
    @Test("is cut into lines, however it comes")
    func lines() {
        var output = ProgramOutput()
        #expect(output.take("one\r\n\ntw".utf8) == ["one"])
        #expect(output.take("o\nthree".utf8) == ["two"])
        #expect(output.finish() == "three")
        #expect(output.finish() == nil && output.leftOut == 0)
    }

    @Test("up to so many lines and so long ones; more are counted, and cost nothing")
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
