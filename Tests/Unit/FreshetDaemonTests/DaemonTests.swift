import FreshetControl
import FreshetEventLoop
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The daemon on its loop")
struct DaemonTests {
    @Test("the daemon starts, serves its socket, commits the content of commands and files, and ends")
    func serves() async throws {
        let home = try Home()
        try home.configure("greeting", Home.printing("hello", to: "greeting.txt"))
        try home.write("input", to: "input")
        try home.configure("file", "source: {file: \(home.path)/input}\ncache: {file: file.txt}\n")
        let log = LogRecorder()
        let exit = try await withDaemon(home, log) { client in
            #expect(try client.refresh("greeting").failure == nil)
            #expect(try client.refresh("file").failure == nil)
            #expect(home.copy("greeting.txt") == "hello\n")
            #expect(home.copy("file.txt") == "input")
            let status = try client.status("greeting")
            #expect(status.state == .loaded)
            #expect(status.freshness == .fresh)
            #expect(status.source == "/bin/echo hello")
            #expect(try client.generation(of: "file").size == 5)
            try home.write("another", to: "input")
            #expect(try client.refresh("file").outcome == .changed)
            #expect(try client.refresh("file").outcome == .unchanged)
            #expect(home.copy("file.txt") == "another")
            #expect(try client.daemon().pipelines.loaded == 2)
            let signals = try client.signals()
            #expect(signals.first { $0.name == "start" }?.fired == 1)
            #expect(signals.first { $0.name == "operator" }?.fired == 4)
        }
        #expect(exit == .success)
        #expect(log.lines.last?.message == "stopped")
        #expect(log.lines.allSatisfy { $0.level < .warning })
        #expect(home.copy("file.txt") == "another", "the copy outlives the daemon")
    }

    @Test("the log level changes for all loggers together, and the change is logged")
    func logLevel() async throws {
        let log = LogRecorder()
        _ = try await withDaemon(try Home(), log) { client in
            #expect(try client.logLevel() == .info)
            try client.setLogLevel(.error)
            #expect(try client.logLevel() == .error)
            #expect(log.lines.last?.metadata["message-id"] == JournalMessage.logLevel.rawValue)
            #expect(log.lines.last?.metadata["level"] == "error")
            #expect(log.lines.last?.metadata["requested-by"] == "user \(geteuid()), process \(getpid())")
        }
    }

    @Test("a reload adds, removes and changes pipelines and does not touch others; with an error it changes nothing")
    func reload() async throws {
        let home = try Home()
        for name in ["stays", "goes", "changes"] { try home.configure(name, Home.printing("one", to: name)) }
        _ = try await withDaemon(home) { client in
            for name in ["stays", "goes", "changes"] { _ = try client.refresh(name) }
            let before = try client.status("stays").lastRun?.number
            try home.configure("goes", nil)
            try home.configure("changes", Home.printing("two", to: "changes"))
            try home.configure("comes", Home.printing("new", to: "comes"))
            let summary = try client.reload(configurationOnly: true).summary
            #expect(
                summary
                    == ReloadSummary(
                        added: ["comes"], changed: ["changes"], removed: ["goes"], unchanged: 1,
                        requestedRuns: [RequestedRun("comes", after: 0)]))
            #expect(try client.pipelines().map(\.name) == ["changes", "comes", "stays"])
            #expect(try client.status("stays").lastRun?.number == before)
            _ = try client.refresh("changes")
            _ = try client.refresh("comes")
            #expect(home.copy("changes") == "two\n")
            #expect(home.copy("comes") == "new\n")
            #expect(home.copy("goes") == "one\n", "what was there stays for its readers")

            try home.configure("stays", "sorce: {}\n")
            try home.configure("changes", nil)
            let failure = #expect(throws: ControlClient.Failure.self) { _ = try client.reload() }
            guard case .refused(.configurationRefused(let errors)) = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(errors.contains { $0.line == 1 && $0.message.contains("did you mean 'source'?") })
            #expect(try client.pipelines().map(\.name) == ["changes", "comes", "stays"])
            #expect(try client.refresh("stays").failure == nil)
        }
    }

    @Test("a reload runs changed pipelines whose copy is of another configuration, and no others")
    func changedOnly() async throws {
        let home = try Home()
        // No signal of this machine's network: it may fire at any time.
        for name in ["stays", "source", "plan"] {
            try home.configure(name, Home.printing("one", to: name) + "refresh: {on: [resume]}\n")
        }
        try home.configure("still", Home.printing("one", to: "still") + "refresh: {on: []}\n")
        _ = try await withDaemon(home) { client in
            let names = ["stays", "source", "plan", "still"]
            for name in names { _ = try client.refresh(name) }
            let before = try names.map { Int64(try client.status($0).lastRun?.number ?? 0) }
            #expect(try client.reload().summary == ReloadSummary(unchanged: 4))
            try home.configure("source", Home.printing("two", to: "source") + "refresh: {on: [resume], every: 9d}\n")
            try home.configure("plan", Home.printing("one", to: "plan") + "refresh: {on: [resume], every: 3d}\n")
            try home.configure("still", Home.printing("two", to: "still") + "refresh: {on: []}\n")
            let summary = try client.reload().summary
            #expect(summary.changed == ["plan", "source", "still"])
            #expect(summary.requestedRuns == [RequestedRun("source", after: before[1])])
            var results: [RefreshResult] = []
            try client.awaitRuns(summary.requestedRuns ?? [], each: { results.append($0) })
            #expect(results.map(\.run) == [before[1] + 1] && results.map(\.outcome) == [.changed])
            #expect(home.copy("source") == "two\n")
            #expect(try client.status("source").lastCauses.map(\.signal) == ["reload"])
            // The run has ended already: the answer is there.
            try client.awaitRuns(summary.requestedRuns ?? [], each: { results.append($0) })
            #expect(results.count == 2 && results[0].run == results[1].run)
            for (name, number) in zip(names, before) where name != "source" {
                #expect(try client.status(name).lastRun?.number == number, "\(name)")
            }
            // A run that cannot come.
            #expect(
                throws: ControlClient.Failure.refused(
                    .failed(
                        name: "stays",
                        reason: "run 99 has not begun, and is not the next run: the last run of 'stays' is \(before[0])"
                    ))
            ) { try client.awaitRuns([RequestedRun("stays", after: 99)], each: { _ in }) }
        }
    }

    @Test("the signal of a reload runs every pipeline that subscribes to it")
    func reloadSignal() async throws {
        let home = try Home()
        try home.configure("hears", Home.printing("one", to: "hears"))
        _ = try await withDaemon(home) { client in
            let before = try client.refresh("hears").run
            _ = try client.reload(refresh: true)
            #expect(
                eventually {
                    let status = try? client.status("hears")
                    return status?.lastCauses.map(\.signal) == ["reload"] && status?.state == .loaded
                })
            #expect(try client.status("hears").lastRun?.number == before.map { $0 + 1 })
        }
    }

    @Test("a pipeline that a configuration-only reload adds gets a first run, unless it subscribes to no signal")
    func newPipeline() async throws {
        let home = try Home()
        _ = try await withDaemon(home) { client in
            for (name, on) in [("new", "[network]"), ("still", "[]")] {
                try home.configure(name, Home.printing("one", to: name) + "refresh: {on: \(on)}\n")
            }
            _ = try client.reload(configurationOnly: true)
            #expect(eventually { (try? client.status("new").generation) != nil })
            #expect(try client.status("new").lastCauses.map(\.signal) == ["start"])
            #expect(try client.status("still").lastRun == nil)
        }
    }

    @Test("the causes of the last run survive a restart, also of a failed run, until the next run")
    func lastRunOfBefore() async throws {
        let home = try Home()
        try home.configure("good", Home.printing("one", to: "good") + "refresh: {on: []}\n")
        // A retry may start at any time up to its limit.
        let refresh = "refresh: {on: [], retry: {from: 365d, to: 365d}}"
        try home.configure("bad", "source: {exec: [/bin/false]}\n\(refresh)\ncache: {file: bad}\n")
        try home.configure("new", Home.printing("one", to: "new") + "refresh: {on: []}\n")
        let runs = Mutex<[String: RunStatus]>([:])
        _ = try await withDaemon(home) { client in
            for name in ["good", "bad"] {
                _ = try client.refresh(name)
                let run = try #require(try client.status(name).lastRun)
                runs.withLock { $0[name] = run }
            }
        }
        _ = try await withDaemon(home) { client in
            for name in ["good", "bad"] {
                let before = try #require(runs.withLock { $0[name] })
                let status = try client.status(name)
                let run = try #require(status.lastRun)
                #expect(run.number == 1 && run.outcome == (name == "good" ? .changed : .failed))
                // The instant was converted from one clock to another and back.
                #expect(abs(run.started - before.started) < 1_000_000)
                let took = try (#require(run.durationUSec), #require(before.durationUSec))
                #expect(took.0 == took.1)
                #expect(run.failure == before.failure && run.generation == before.generation)
                #expect(status.lastCauses.map(\.signal) == ["operator"])
                #expect(status.lastCauses.map(\.count) == [1])
                // No run has failed since the restart, so no retry is planned.
                #expect(status.failure == nil)
                #expect(try client.summaries(ControlMessage.List(names: [name])).map(\.causes) == [["operator"]])
            }
            #expect(try client.status("new").lastRun == nil)
            #expect(try client.refresh("good").run == 2)
            #expect(try client.status("good").lastRun?.number == 2)
        }
    }

    @Test("the status shows a refused reload until one succeeds, with its first error and no text from the file")
    func refusedReload() async throws {
        let home = try Home()
        try home.configure("a", Home.printing("one", to: "a"))
        _ = try await withDaemon(home) { client in
            let before = try client.daemon()
            #expect(before.refusedReload == nil)
            let since = try #require(before.configurationSince)
            #expect(since >= before.since)
            try home.configure("a", Home.printing("one", to: "a") + "refresh: {evry: 1h}\nsecret: hunter2\n")
            for _ in 1...2 { #expect(throws: ControlClient.Failure.self) { try client.reload() } }
            let refused = try #require(try client.daemon().refusedReload)
            #expect(refused.errors == 2 && refused.at >= since)
            #expect(refused.first.file == home.path + "/etc/pipelines/a.yaml")
            #expect(refused.first.line == 3 && refused.first.column == 11)
            #expect(refused.first.message.contains("evry"))
            #expect(refused.first.excerpt == nil && refused.first.caret == nil)
            #expect(try client.daemon().configurationSince == since)
            try home.configure("a", Home.printing("two", to: "a"))
            _ = try client.reload(configurationOnly: true)
            let after = try client.daemon()
            #expect(after.refusedReload == nil)
            #expect(try #require(after.configurationSince) > since)
        }
    }

    @Test("a request for a further page of a pipeline without pages is refused for that reason")
    func noPages() async throws {
        let home = try Home()
        try home.configure("whole", Home.printing("one", to: "whole"))
        let paged = "source: {url: 'http://127.0.0.1:9/', pages: {next: link}}\nrefresh: {on: []}\n"
        try home.configure("all", paged + "cache: {file: all.json}\n")
        _ = try await withDaemon(home) { client in
            for (name, reason) in [
                ("whole", "it has no 'pages'; each run loads everything"),
                ("all", "it loads all pages by itself ('pages.load' is not a number)"),
            ] {
                let refusal = ControlError.cannotLoadMore(name: name, reason: reason)
                #expect(throws: ControlClient.Failure.refused(refusal)) {
                    _ = try client.loadMore(ControlMessage.LoadMore(name: name))
                }
            }
        }
    }

    @Test("a pipeline that is invalid at the start does not run, shows the error, and keeps its copy published")
    func invalid() async throws {
        let home = try Home()
        try home.configure("broken", Home.printing("before", to: "broken"))
        try home.configure("sound", Home.printing("sound", to: "sound"))
        _ = try await withDaemon(home) { _ = try $0.refresh("broken") }
        try home.configure("broken", Home.printing("x", to: "broken") + "refresh: {evry: 1h}\n")
        let log = LogRecorder()
        let exit = try await withDaemon(home, log) { client in
            let status = try client.status("broken")
            #expect(status.state == .failed)
            #expect(status.generation?.number == 1)
            #expect(
                status.failure?.message.contains("broken.yaml:3:11") == true, "\(String(describing: status.failure))")
            #expect(home.copy("broken") == "before\n")
            #expect(try client.refresh("sound").failure == nil)
            let refusal = try client.refresh("broken")
            #expect(refusal.outcome == .failed)
            #expect(refusal.failure?.hasPrefix("it does not run: ") == true, "\(String(describing: refusal))")
            // After the repair, the pipeline continues with its copy.
            try home.configure("broken", Home.printing("before", to: "broken"))
            #expect(try client.reload(configurationOnly: true).summary.added == ["broken"])
            #expect(try client.refresh("broken").outcome == .unchanged)
            #expect(try client.status("broken").generation?.number == 1)
        }
        #expect(exit == .success)
        let error = log.lines.first { $0.level == .error }
        #expect(error?.metadata["pipeline"] == "broken")
        #expect(error?.message == "\(JournalMessage.invalidPipeline.text)")
    }

    @Test("a second daemon on the same state directory fails and names the first one, which is not affected")
    func second() async throws {
        let home = try Home()
        try home.configure("greeting", Home.printing("hello", to: "greeting"))
        let loop = try DaemonLoop.shared.get()
        let log = LogRecorder()
        let other = try Daemon(options: home.options, loop: loop, log: log.logger)
        let exit = try await withDaemon(home) { client in
            let second = SharedValue<DaemonExit>()
            Task(executorPreference: loop) { second.set(await other.run()) }
            #expect(eventually { second.value != nil })
            #expect(second.value == .failure)
            let result = try client.refresh("greeting")
            #expect(result.failure == nil)
        }
        #expect(exit == .success)
        let line = log.lines.first { $0.level == .critical }
        let error = line?.metadata["error"] ?? ""
        #expect(error.contains("\(home.path)/state is in use by process \(getpid())"), "\(error)")
    }

    @Test("an error in freshet.yaml ends the daemon with the status for a configuration error")
    func invalidDaemonFile() async throws {
        let home = try Home()
        try home.write("concurency: 3\n", to: "etc/freshet.yaml")
        let loop = try DaemonLoop.shared.get()
        let log = LogRecorder()
        let daemon = try Daemon(options: home.options, loop: loop, log: log.logger)
        let exit = await Task(executorPreference: loop) { await daemon.run() }.value
        #expect(exit == .configuration)
        #expect(
            log.lines.contains {
                $0.level == .error && $0.metadata["error"]?.contains("did you mean 'concurrency'?") == true
            })
    }

    @Test("the error for a state directory below a file names the file")
    func directoryBelowFile() async throws {
        let home = try Home()
        try home.write("", to: "state")
        let log = LogRecorder()
        #expect(try await withDaemon(home, log) { _ in Issue.record("it started") } == .failure)
        #expect(log.lines.last?.metadata["error"]?.contains("\(home.path)/state") == true)
    }

    @Test("a command that does not end is killed with the daemon, and the run leaves nothing")
    func endsRuns() async throws {
        let home = try Home()
        try home.configure("endless", "source: {exec: [/bin/sleep, 1000]}\ncache: {file: endless}\n")
        let log = LogRecorder()
        let exit = try await withDaemon(home, log) { client in
            #expect(eventually { (try? client.status("endless").state) == .loading })
        }
        #expect(exit == .success)
        #expect(home.copy("endless") == nil)
        #expect(
            log.lines.contains { $0.message == "run ended early" && $0.metadata["outcome"] == "cancelled" })
    }
}

/// The test runs in its own process, in which no other test has descriptors, threads or children. An exit test does not
/// suffice, because it waits forever if other tests leave children for the system to reap.
@Suite("Leftovers of a daemon that has ended")
struct LeftoversTests {
    /// The environment variable that is set in that process.
    private static let mark = "FRESHET_TEST_LEFTOVERS"

    @Test("a daemon leaves no descriptors, threads, sockets or children")
    func nothingLeft() async throws {
        if getenv(Self.mark) != nil { return try await lookForLeftovers() }
        let loop = try EventLoop()
        try loop.runInThread(named: "watching-loop")
        defer { loop.stop() }
        let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open")
        let paths = ["PATH", "HOME", "LD_LIBRARY_PATH"].compactMap { (name: String) in
            getenv(name).map { (name, String(cString: $0)) }
        }
        let child = try ChildProcess(
            loop,
            ChildProcess.Command(
                path: try #require(Leftovers.executable),
                arguments: ["--testing-library", "swift-testing", "--filter", "LeftoversTests"],
                environment: Dictionary(uniqueKeysWithValues: paths + [(Self.mark, "1")])),
            input: null.rawValue, output: STDERR_FILENO, error: STDERR_FILENO)
        #expect(await child.wait() == .exited(status: 0), "what is left is written above")
    }

    private func lookForLeftovers() async throws {
        let home = try Home()
        try home.configure("greeting", Home.printing("hello", to: "greeting"))
        try home.configure("endless", "source: {exec: [/bin/sleep, 1000]}\ncache: {file: endless}\n")
        try home.configure("remote", "source: {url: http://127.0.0.1:9/}\ncache: {file: remote}\n")
        // The runtime opens its own descriptors at the first use.
        _ = try await withDaemon(try Home()) { _ in }
        // Threads close their descriptors when they end.
        #expect(await eventually { Leftovers.threads.isEmpty }, "\(Leftovers.threads)")
        let before = Leftovers.descriptors
        for _ in 0..<3 {
            let exit = try await withDaemon(home) { client in
                _ = try client.refresh("greeting")
                _ = try client.reload()
                #expect(eventually { (try? client.status("endless").state) == .loading })
            }
            #expect(exit == .success)
        }
        #expect(await eventually { Leftovers.descriptors == before }, "\(Leftovers.descriptors) \(before)")
        #expect(await eventually { Leftovers.threads.isEmpty }, "\(Leftovers.threads)")
        #expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD)
        #expect(access(home.socket, F_OK) != 0)
    }
}

/// A value that another thread sets.
final class SharedValue<Value: Sendable>: Sendable {
    private let stored = Mutex<Value?>(nil)
    var value: Value? { stored.withLock { $0 } }
    func set(_ value: Value) { stored.withLock { $0 = value } }
}

/// The open descriptors and the daemon's threads of this process.
enum Leftovers {
    /// The executable of this process.
    static var executable: String? { link("/proc/self/exe") }

    private static func link(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { readlink(path, $0, bytes.count) } ?? -1
        }
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }

    /// The targets of all descriptors, without the numbers of sockets and pipes.
    static var descriptors: [String] {
        TemporaryDirectory.names("/proc/self/fd").compactMap { (name: String) in
            // The descriptor that read the directory is closed already.
            guard let target = link("/proc/self/fd/\(name)") else { return nil }
            return target.hasPrefix("/proc/") ? nil : String(target.prefix { $0 != "[" })
        }.sorted()
    }

    static var threads: [String] {
        TemporaryDirectory.names("/proc/self/task").compactMap { task in
            let descriptor = open("/proc/self/task/\(task)/comm", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            var buffer = [UInt8](repeating: 0, count: 64)
            let count = max(0, read(descriptor, &buffer, buffer.count))
            let name = String(decoding: buffer.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
            return ["test-loop", "freshet-worker"].contains(name) ? name : nil
        }
    }
}
