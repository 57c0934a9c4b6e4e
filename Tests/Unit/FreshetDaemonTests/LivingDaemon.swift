import FreshetControl
import FreshetEventLoop
import Glibc
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetDaemon
@testable import FreshetPipelines

/// The directories of a daemon in a test.
final class Home: Sendable {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try #require(mkdir(directory.path + "/etc", 0o755) == 0)
        try #require(mkdir(directory.path + "/etc/pipelines", 0o755) == 0)
        try #require(mkdir(directory.path + "/credentials", 0o700) == 0)
    }

    var path: String { directory.path }
    var socket: String { path + "/run/socket" }

    var options: DaemonOptions {
        var options = DaemonOptions()
        options.configurationDirectories = [path + "/etc"]
        options.stateDirectory = path + "/state"
        options.cacheDirectory = path + "/cache/below"
        options.runtimeDirectory = path + "/run"
        options.socket = socket
        options.environment = ["CREDENTIALS_DIRECTORY": path + "/credentials"]
        return options
    }

    /// Writes the file of a pipeline; nil removes it.
    func configure(_ name: String, _ text: String?) throws {
        if let text {
            try directory.write(text, to: "etc/pipelines/\(name).yaml")
        } else {
            unlink(path + "/etc/pipelines/\(name).yaml")
        }
    }

    func write(_ text: String, to name: String) throws { try directory.write(text, to: name) }

    /// The beginning of a file; nil if there is none.
    func text(_ name: String) -> String? { directory.text(name) }

    /// The published file.
    func copy(_ name: String) -> String? { directory.text("cache/below/current/\(name)") }

    /// A pipeline that prints a text.
    static func printing(_ text: String, to file: String) -> String {
        "source: {exec: [/bin/echo, \(text)]}\ncache: {file: \(file)}\n"
    }
}

/// The loop of all daemons in this process. They share ``DaemonActor`` too, so no loop with jobs of this actor may stop.
///
/// Tasks that use the actor directly have to prefer the loop: then all jobs of the actor run on the loop's thread, as in
/// `freshetd`.
enum DaemonLoop {
    static let shared = Result {
        let loop = try EventLoop()
        try loop.runInThread(named: "daemon-loop")
        return loop
    }

    /// Limits the daemons that run at the same time. Each has some inotify(7) instances, and a user has only 128.
    fileprivate static let permits = AsyncSemaphore(limit: 12)

    /// Runs a body on the loop.
    nonisolated(nonsending) static func run<Value>(
        _ body: (EventLoop) async throws -> Value
    ) async throws -> Value {
        let loop = try shared.get()
        return try await withTaskExecutorPreference(loop) { try await body(loop) }
    }
}

/// Runs a daemon while `body` uses it on a thread that may block. Then it ends the daemon and waits for that.
func withDaemon(
    _ home: Home, _ log: LogRecorder = LogRecorder(), _ body: @escaping @Sendable (ControlClient) throws -> Void
) async throws -> DaemonExit {
    let loop = try DaemonLoop.shared.get()
    return try await DaemonLoop.permits.pass { () async throws(FetchError) -> Result<DaemonExit, any Error> in
        do {
            let daemon = try Daemon(options: home.options, loop: loop, log: log.logger)
            let life = Task(executorPreference: loop) { await daemon.run() }
            let result = await onThread {
                let ends = ["ready", "cannot start: {error}"]
                try #require(eventually { log.lines.contains { ends.contains($0.message) } })
                if log.lines.contains(where: { $0.message == ends[1] }) { return }
                try body(try ControlClient(path: home.socket))
            }
            daemon.end()
            let exit = await life.value
            try result.get()
            return .success(exit)
        } catch {
            return .failure(error)
        }
    }.get()
}

extension ControlClient {
    /// Requests a run and waits for its end.
    func refresh(_ name: String) throws -> RefreshResult {
        var results: [RefreshResult] = []
        try refresh(ControlMessage.Refresh(names: [name], wait: true)) { results.append($0) }
        return try #require(results.first)
    }

    func status(_ name: String) throws -> FreshetControl.PipelineStatus {
        try #require(try pipelines([name]).first)
    }
}
