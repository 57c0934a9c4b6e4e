import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Commands: output, limits, and the end of the whole process group")
struct CommandRunnerTests {
    let running: RunningLoop
    let runner: CommandRunner

    init() throws {
        running = try RunningLoop()
        runner = CommandRunner(
            running.loop, workers: WorkerPool(), environment: ["LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"])
    }

    func run(
        _ command: [String], maxBytes: UInt64 = 1 << 20, progress: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) async throws(FetchError) -> String {
        let output = try await runner.run(command, maxBytes: maxBytes, progress: progress)
        return String(decoding: output.bytes ?? [], as: UTF8.self)
    }

    func shell(_ script: String, maxBytes: UInt64 = 1 << 20) async throws(FetchError) -> String {
        try await run(["/bin/sh", "-c", script], maxBytes: maxBytes)
    }

    @Test("standard output is the data, standard error is not, standard input is empty")
    func output() async throws {
        #expect(try await shell("cat; echo one; echo noise >&2; echo two") == "one\ntwo\n")
        #expect(try await shell("true") == "")
    }

    @Test("arguments are passed unchanged, without a shell")
    func arguments() async throws {
        #expect(try await run(["/usr/bin/printf", "%s|", "a b", "$HOME", "*", ""]) == "a b|$HOME|*||")
    }

    @Test("many commands that end immediately all return their output")
    func brief() async throws {
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<300 { group.addTask { try await run(["/bin/echo", "\(number)"]) } }
            var outputs: Set<String> = []
            for try await output in group { outputs.insert(output) }
            #expect(outputs == Set((0..<300).map { "\($0)\n" }))
        }
    }

    @Test("a command has only the given environment")
    func environment() async throws {
        #expect(try await run(["/usr/bin/env"]) == "LANG=C.UTF-8\nPATH=/usr/bin:/bin\n")
        let clean = CommandRunner.cleanEnvironment()
        #expect(Set(clean.keys).isSubset(of: ["PATH", "LANG", "HOME"]))
        #expect(clean["PATH"]?.isEmpty == false)
    }

    @Test("a failure contains the status and the last line of standard error, with control characters escaped")
    func exitStatus() async throws {
        let failure = try await failureOf { () async throws(FetchError) in
            try await shell("echo data; echo first >&2; printf ' no \\033[1mtoken\\n\\n' >&2; exit 3")
        }
        #expect(failure == RunFailure(.local, "/bin/sh exited with status 3: no \\u{1b}[1mtoken"))
        let silent = try await failureOf { () async throws(FetchError) in try await shell("exit 255") }
        #expect(silent == RunFailure(.local, "/bin/sh exited with status 255"))
        let killed = try await failureOf { () async throws(FetchError) in try await shell("kill -9 $$") }
        #expect(killed == RunFailure(.local, "/bin/sh was ended by signal 9"))
    }

    @Test("a failure contains the end of a long standard error")
    func errorTail() async throws {
        let failure = try await failureOf { () async throws(FetchError) in
            try await shell("i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done >&2; exit 1")
        }
        #expect(failure.message == "/bin/sh exited with status 1: line 19999")
    }

    @Test(
        "a path that is not absolute or not executable is a local failure",
        arguments: [["true"], [], ["./x"], ["/nonexistent/command"], ["/etc/passwd"], ["/tmp"]])
    func cannotStart(_ command: [String]) async throws {
        let failure = try await failureOf { () async throws(FetchError) in try await run(command) }
        #expect(failure.kind == .local)
    }

    @Test("output of exactly the limit is accepted; one byte more ends the command")
    func outputLimit() async throws {
        #expect(try await shell("printf 12345", maxBytes: 5) == "12345")
        let failure = try await failureOf { () async throws(FetchError) in try await shell("printf 123456", maxBytes: 5)
        }
        #expect(failure.kind == .content && failure.message.contains("check.max-bytes"))
        // Without the kill this would never end.
        let endless = try await failureOf { () async throws(FetchError) in
            try await run(["/usr/bin/yes"], maxBytes: 100_000)
        }
        #expect(endless.kind == .content)
    }

    @Test("a large output is complete")
    func largeOutput() async throws {
        #expect(try await run(["/usr/bin/head", "-c", "1000000", "/dev/zero"]).utf8.count == 1_000_000)
    }

    @Test("cancelling ends the command and the processes that it started")
    func cancel() async throws {
        let directory = try TemporaryDirectory()
        let started = Event()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            try await run(
                ["/bin/sh", "-c", "sleep 1000 & echo $! > \(directory.path)/pid; echo ready; wait"],
                progress: { _ in started.happen() })
        }
        await started.occurrence()
        let grandchild = try #require(directory.text("pid").flatMap { Int($0.dropLast()) })
        #expect(isRunning(grandchild))
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        #expect(await eventually { !isRunning(grandchild) })
    }

    @Test("a command that ignores SIGTERM is killed after the grace period")
    func stubborn() async throws {
        let started = Event()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            try await run(
                ["/bin/sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.05; done"],
                progress: { _ in started.happen() })
        }
        await started.occurrence()
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
    }

    @Test("a run that is cancelled before it starts does not run the command")
    func cancelBefore() async throws {
        let directory = try TemporaryDirectory()
        let gate = Event()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            await gate.occurrence()
            return try await shell("echo > \(directory.path)/ran")
        }
        task.cancel()
        gate.happen()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        #expect(directory.text("ran") == nil)
    }

    @Test("perform combines both outputs, adds the variables and uses the working directory")
    func performed() async throws {
        let received = Mutex<[UInt8]>([])
        try await runner.perform(
            ["/bin/sh", "-c", "echo one; echo two >&2; echo $HOOK in $(pwd)"], variables: ["HOOK": "three"],
            directory: "/usr", timeout: .seconds(60)
        ) { bytes in received.withLock { $0 += bytes } }
        #expect(String(decoding: received.withLock { $0 }, as: UTF8.self) == "one\ntwo\nthree in /usr\n")
        let failure = try await failureOf { () async throws(FetchError) in
            try await runner.perform(
                ["/bin/sh", "-c", "echo why; exit 4"], variables: [:], directory: "/", timeout: .seconds(60)
            ) { _ in }
        }
        #expect(failure == RunFailure(.local, "/bin/sh exited with status 4: why"))
    }

    @Test("exitStatus returns any exit status; an end by a signal is a failure")
    func anyExitStatus() async throws {
        func status(_ script: String) async throws(FetchError) -> Int32 {
            try await runner.exitStatus(
                ["/bin/sh", "-c", script], variables: [:], directory: "/", timeout: .seconds(60)
            ) { _ in }
        }
        #expect(try await status("exit 0") == 0)
        #expect(try await status("echo no; exit 7") == 7)
        let killed = try await failureOf { () async throws(FetchError) in try await status("echo why; kill -9 $$") }
        #expect(killed == RunFailure(.local, "/bin/sh was ended by signal 9: why"))
    }

    @Test("the timeout ends a command with all processes that it started, even if they ignore SIGTERM")
    func timeout() async throws {
        let directory = try TemporaryDirectory()
        let failure = try await failureOf { () async throws(FetchError) in
            try await runner.perform(
                ["/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo $! > \(directory.path)/pid; sleep 1000; exit 0"],
                variables: [:], directory: "/", timeout: .milliseconds(300)
            ) { _ in }
        }
        #expect(failure == RunFailure(.deadline, "/bin/sh was stopped: it took longer than 1 s"))
        // The command may have been ended before it started another process.
        guard let grandchild = directory.text("pid").flatMap({ Int($0.dropLast()) }) else { return }
        #expect(await eventually { !isRunning(grandchild) })
    }

    @Test("output without a limit ends with its command")
    func flood() async throws {
        let failure = try await failureOf { () async throws(FetchError) in
            try await runner.perform(["/usr/bin/yes"], variables: [:], directory: "/", timeout: .milliseconds(300)) {
                _ in
            }
        }
        #expect(failure.kind == .deadline)
    }

    @Test("processes that a command leaves behind are killed, even if they hold the output open")
    func leftovers() async throws {
        let directory = try TemporaryDirectory()
        #expect(try await shell("sleep 1000 & echo $! > \(directory.path)/pid; echo done") == "done\n")
        let left = try #require(directory.text("pid").flatMap { Int($0.dropLast()) })
        #expect(await eventually { !isRunning(left) })
        // A process that left the group does not delay the result either: if it did, the command would reach its time limit.
        #expect(try await shell("setsid sleep 1000 & echo $! > \(directory.path)/pid; echo done") == "done\n")
        if let escaped = directory.text("pid").flatMap({ Int32($0.dropLast()) }) { endProcess(escaped) }
    }
}

@Suite("The kept end of a stream")
struct TailTests {
    @Test("the last bytes up to the limit are kept")
    func limit() {
        var tail = Tail(limit: 4)
        for byte in UInt8(0)..<100 { tail.append([byte]) }
        #expect(Array(tail.last) == [96, 97, 98, 99])
        tail.append(Array(0..<50))
        #expect(Array(tail.last) == [46, 47, 48, 49])
    }

    @Test(
        "the last line is the last line that is not blank",
        arguments: [("", nil), (" \n\n", nil), ("a", "a"), ("a\nb \n \n", "b"), ("a\r\n\tb c\r\n", "b c")])
    func lastLine(_ text: String, _ line: String?) {
        var tail = Tail(limit: 100)
        tail.append(Array(text.utf8))
        #expect(tail.lastLine.map { String(decoding: $0, as: UTF8.self) } == line)
    }
}
