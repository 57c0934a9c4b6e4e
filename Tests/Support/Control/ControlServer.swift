package import FreshetControl
import FreshetEventLoop
package import FreshetVarlink
import Glibc
import TestSupport
import ThreadTestSupport

/// The rights with which this process may change everything, as the owner of its daemon.
package let ownRights = ControlRights(daemonUser: geteuid(), isSystemDaemon: false, changingGroup: nil)

/// The rights with which this process may only read, even if it is root.
package let strangerRights = ControlRights(
    daemonUser: 4_000_000_000, isSystemDaemon: true, changingGroup: nil, superuser: 4_000_000_001)

/// Serves a scripted daemon on a real socket, runs `body` on a thread that may block, and stops.
///
/// - Parameter silence: how long a connection may be idle.
package func withControlServer(
    _ service: ScriptedService, rights: ControlRights = ownRights, silence: Duration = testTimeout,
    _ body: @escaping @Sendable (_ path: String) throws -> Void
) async throws {
    try await withControlServer(service, rights: rights, silence: silence) { path, _ in try body(path) }
}

/// The same function, with the server itself for `body`.
package func withControlServer(
    _ service: ScriptedService, rights: ControlRights = ownRights, silence: Duration = testTimeout,
    _ body: @escaping @Sendable (_ path: String, _ server: VarlinkServer) throws -> Void
) async throws {
    try await withServer(
        of: try ControlDispatcher(service.services, rights: rights).interfaces(), silence: silence, body)
}

/// Serves a daemon of another version, or another program: an interface whose methods answer with these JSON texts.
package func withForeignServer(
    interface: String = ControlInterface.name, replies: [String: String],
    _ body: @escaping @Sendable (_ path: String) throws -> Void
) async throws {
    var methods: [String: VarlinkInterface.Handler] = [:]
    for (method, json) in replies {
        let parameters = try VarlinkParameters(encoding: try JSONValue(json))
        methods[method] = { _ in parameters }
    }
    let description =
        "interface \(interface)\n"
        + replies.keys.map {
            "method \($0)(names: int, all: int, limit: int, wait: int, force: int, configurationOnly: int) -> ()\n"
        }.joined()
    try await withServer(of: [try VarlinkInterface(description: description, methods: methods)]) { path, _ in
        try body(path)
    }
}

private func withServer(
    of interfaces: [VarlinkInterface], silence: Duration = testTimeout,
    _ body: @escaping @Sendable (_ path: String, _ server: VarlinkServer) throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path(ControlInterface.name)
    let loop = try EventLoop()
    try loop.runInThread(named: "test-loop")
    defer { loop.stop() }
    var limits = VarlinkServer.Limits()
    limits.silence = silence
    let server = try VarlinkServer(
        loop, try VarlinkListener(path: path),
        identity: .init(vendor: "Freshet", product: "freshetd", version: "1.0", url: "https://example.org/"),
        interfaces: interfaces, limits: limits)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(executorPreference: loop) { try await server.run() }
        let result = await onThread { try body(path, server) }
        group.cancelAll()
        try await group.waitForAll()
        try result.get()
    }
}
