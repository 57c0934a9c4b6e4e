import FreshetEventLoop
package import FreshetNATS
import Glibc
import Synchronization
package import TestSupport
import Testing
import ThreadTestSupport

/// A real nats-server on a free port of loopback, in its own directory. It ends with the value.
package final class NATSServer: Sendable {
    /// The program, which `Scripts/setup test` unpacks; nil: it could not be downloaded.
    package static let program: String? = {
        let root = "\(#filePath)".split(separator: "/").dropLast(4).joined(separator: "/")
        let path = "/\(root)/.build/test-nats/bin/nats-server"
        return access(path, X_OK) == 0 ? path : nil
    }()
    package static let isAvailable = program != nil

    package let directory: TemporaryDirectory
    private let loop: EventLoop
    private let configuration: String
    private let process: Mutex<ChildProcess?>
    private let portNumber = Mutex(0)

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - configuration: further blocks of the configuration; `DIRECTORY` stands for the server's directory.
    ///   - prepare: makes files in the directory before the start.
    package init(_ configuration: String = "", prepare: (TemporaryDirectory) async throws -> Void = { _ in })
        async throws
    {
        directory = try TemporaryDirectory()
        self.configuration = configuration.replacing("DIRECTORY", with: directory.path)
        loop = try EventLoop()
        try loop.runInThread(named: "nats-server")
        process = Mutex(nil)
        try await prepare(directory)
        try await start()
    }

    deinit {
        process.withLock { $0 }?.signal(SIGKILL)
        loop.stop()
    }

    package var port: Int { portNumber.withLock { $0 } }

    package func address(tls: Bool = false) throws -> NATSServerAddress {
        try NATSServerAddress("\(tls ? "https" : "http")://127.0.0.1:\(port)")
    }

    /// Starts the server, the second time on the same port.
    package func start() async throws {
        let path = try directory.write(
            """
            host: 127.0.0.1
            port: \(port == 0 ? -1 : port)
            server_name: test
            ports_file_dir: "\(directory.path)"
            log_file: "\(directory.path("log"))"
            \(configuration)

            """, to: "configuration")
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        let child = try ChildProcess(
            loop, .init(path: try #require(Self.program), arguments: ["-c", path]), input: null, output: null,
            error: null)
        process.withLock { $0 = child }
        let ports = directory.path("nats-server_\(child.identifier).ports")
        let isReady = await eventually {
            guard child.result == nil else { return true }
            guard let text = TemporaryDirectory.text(ports), let end = text.firstRange(of: "127.0.0.1:")?.upperBound
            else {
                return false
            }
            portNumber.withLock { $0 = Int(text[end...].prefix { $0.isNumber }) ?? 0 }
            return port > 0
        }
        try #require(isReady && child.result == nil, "nats-server: \(log)")
    }

    /// Kills the server, and waits for its end.
    package func kill() async {
        let child = process.withLock { $0 }
        child?.signal(SIGKILL)
        _ = await child?.wait()
    }

    /// Lets the server read its configuration again.
    package func reload(_ change: (String) -> String) throws {
        try directory.write(change(directory.text("configuration") ?? ""), to: "configuration")
        process.withLock { $0 }?.signal(SIGHUP)
    }

    /// Stops the server from running, or lets it run again.
    package func freeze(_ isFrozen: Bool) { process.withLock { $0 }?.signal(isFrozen ? SIGSTOP : SIGCONT) }

    /// What the server logged.
    package var log: String { directory.text("log") ?? "no log" }

    /// How often the log has a text.
    package func count(_ text: String) -> Int { log.ranges(of: text).count }
}
