import FreshetEventLoop
import FreshetSignals
import Glibc
import Testing

@testable import FreshetSystemSignals

/// A private network: a loop whose thread has left the machine's network namespace for an empty one.
///
/// The actor runs on that thread, so its sockets and commands are in that namespace. The namespace ends with the thread
/// and the sockets.
actor NetworkBed {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Whether this process may create such networks; otherwise the suite is skipped with a message.
    static let isAvailable: Bool = {
        guard geteuid() == 0, access(ipCommand, X_OK) == 0, unshareCall != nil else { return false }
        // Try it in a child, so that no thread of this process is changed.
        return run([
            "unshare", "-n", ipCommand, "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1",
        ]) == 0
    }()

    /// Runs a command to its end, and returns waitpid(2)'s status; nil if it could not be started.
    private static func run(_ arguments: [String], input: Int32 = 0) -> Int32? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, 0)
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var pid = pid_t()
        guard posix_spawnp(&pid, arguments[0], &actions, nil, &pointers, environ) == 0 else { return nil }
        var status: Int32 = 0
        return waitpid(pid, &status, 0) == pid ? status : nil
    }

    private static let ipCommand = "/usr/sbin/ip"
    private static let newNetwork: Int32 = 0x4000_0000  // CLONE_NEWNET, unshare(2)
    /// unshare(2), which the Glibc module lacks.
    private static var unshareCall: (@convention(c) (Int32) -> Int32)? {
        dlsym(nil, "unshare").map { unsafeBitCast($0, to: (@convention(c) (Int32) -> Int32).self) }
    }

    private init(_ loop: EventLoop) { self.loop = loop }

    /// Runs a test in a new network, and removes the network afterwards.
    static func with(
        _ body: @Sendable (NetworkBed) async throws -> Void
    ) async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "network-bed")
        defer { loop.stop() }
        let bed = NetworkBed(loop)
        try await bed.enter()
        try await body(bed)
    }

    private func enter() async throws {
        let unshare = try #require(Self.unshareCall)
        try #require(unshare(Self.newNetwork) == 0)
        try await ip("link set lo up")
    }

    /// Runs `ip` with the words of a line.
    func ip(_ line: String) async throws {
        let arguments = line.split(separator: " ").map(String.init)
        let child = try ChildProcess(
            loop, ChildProcess.Command(path: Self.ipCommand, arguments: arguments), input: 0, output: 1, error: 2)
        let exit = await child.wait()
        try #require(exit == .exited(status: 0), "ip \(line)")
    }

    /// Runs `ip -batch` with many lines and blocks meanwhile: the loop reads no event before the command has ended.
    func ipBatch(_ lines: [String]) throws {
        let file = try #require(tmpfile())
        defer { fclose(file) }
        let text = Array(lines.joined(separator: "\n").utf8)
        try #require(fwrite(text, 1, text.count, file) == text.count)
        rewind(file)
        #expect(Self.run([Self.ipCommand, "-batch", "-"], input: fileno(file)) == 0)
    }

    /// Creates `wan0` with 192.0.2.2/24, connected to `far`.
    func cable(_ name: String = "wan0", to far: String = "far", address: String? = "192.0.2.2/24") async throws {
        try await ip("link add name \(name) type veth peer name \(far)")
        try await ip("link set \(far) up")
        try await ip("link set \(name) up")
        if let address { try await ip("addr add \(address) dev \(name)") }
    }

    /// The results of a socket for a message from another process's socket, and for the next read.
    func receivedFromImpostor() throws -> [NetlinkSocket.Received] {
        let victim = try NetlinkSocket(receiveBuffer: NetworkMonitor.defaultReceiveBuffer)
        let impostor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue), 0)
        try #require(impostor >= 0)
        defer { close(impostor) }
        let message = Bytes.link(17, index: 1, flags: 0, name: Array("lo".utf8))
        // struct sockaddr_nl: family, padding, port (32), groups (32)
        let address = Bytes.of(UInt16(AF_NETLINK)) + [0, 0] + Bytes.of(victim.port) + Bytes.of(UInt32(0))
        let sent = address.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { pointer in
                sendto(impostor, message, message.count, 0, pointer.baseAddress, socklen_t(address.count))
            }
        }
        try #require(sent == message.count)
        return [victim.receive(), victim.receive()]
    }

    /// The routes to addresses according to a new socket, and the number of datagrams with queries.
    func routes(
        to addresses: [IPAddress], receiveBuffer: Int32 = NetworkMonitor.defaultReceiveBuffer
    ) throws -> (answers: [IPAddress: RouteAnswer], datagrams: Int) {
        let socket = try NetlinkSocket(receiveBuffer: receiveBuffer)
        return (socket.routes(to: addresses), socket.sentQueries)
    }

    /// Like at a resume: on the loop's thread.
    func beginEpoch(of monitor: NetworkMonitor) { monitor.beginEpoch() }

    /// Like `freshetctl fire`: on the loop's thread.
    func fire(_ monitor: NetworkMonitor, _ detail: String) { monitor.fire(.elsewhere, detail) }

    func monitor(
        receiveBuffer: Int32 = NetworkMonitor.defaultReceiveBuffer,
        onEpoch: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) throws -> NetworkMonitor {
        let monitor = NetworkMonitor(
            loop, onEpoch: onEpoch,
            open: { () throws(NetlinkError) in try NetworkMonitor.Sockets(receiveBuffer: receiveBuffer) })
        try #require(monitor.availability == .available)
        return monitor
    }
}

extension NetworkWatch {
    /// Waits for a fact; the suite's time limit is the deadline.
    func fact(where isWanted: @Sendable (NetworkFact) -> Bool) async throws -> NetworkFact {
        for await fact in facts where isWanted(fact) { return fact }
        throw CancellationError()
    }
}
