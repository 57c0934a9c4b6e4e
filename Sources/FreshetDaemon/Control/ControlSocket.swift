import FreshetControl
import FreshetEventLoop
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging

/// The control socket, which the service manager passes or the daemon creates.
@DaemonActor
final class ControlSocket {
    /// The name of the socket in the socket unit (`FileDescriptorName=`).
    nonisolated static let name = "varlink"
    /// More than any home page has.
    private nonisolated static let urlBytes = 2_048
    /// The least number of an ordinary user (login.defs(5), UID_MIN on Debian).
    private static let firstOrdinaryUser: UInt32 = 1_000

    private let context: DaemonContext
    private let server: VarlinkServer
    /// Watches the directory of a socket that the daemon created.
    private var watch: DirectoryWatch?
    /// The message that the socket cannot be created again has been logged.
    private var isLost = false

    /// Listens on the socket that the service manager passed, or creates it. Clients wait in the socket's queue until
    /// ``run()`` is called.
    ///
    /// - Parameter inherited: the socket that the service manager passed.
    init(_ context: DaemonContext, inherited: VarlinkListener?, _ services: ControlServices) throws {
        self.context = context
        let path = context.options.socket ?? "\(context.directories.runtime)/\(ControlInterface.name)"
        let listener = try inherited ?? VarlinkListener(path: path)
        let rights = Self.rights()
        server = try VarlinkServer(
            context.loop, listener,
            identity: VarlinkServer.Identity(
                vendor: "Freshet", product: "freshetd", version: Version.current,
                url: Self.url(environment: context.options.environment)),
            interfaces: try ControlDispatcher(services, rights: rights).interfaces(),
            isPrivileged: rights.hasReservedConnections)
        if let path = listener.path { keepInPlace(path) }
    }

    /// Serves clients until the task is cancelled. A failure ends the daemon.
    func run() async {
        do {
            try await server.run()
        } catch {
            context.log.log(.controlFailed, [.error: .string("\(error)")])
            context.tasks.end(.failure)
        }
    }

    /// The socket that the service manager passed; nil if it passed none.
    ///
    /// - Throws: ``ActivationError`` or ``VarlinkListener/Failure``; a retry does not help with either.
    nonisolated static func inheritedListener(_ passed: [ListenDescriptors.Item]) throws -> VarlinkListener? {
        guard let item = passed.first else { return nil }
        guard passed.count == 1 else { throw ActivationError.several(passed.map(\.name)) }
        guard item.name == name else { throw ActivationError.misnamed(item.name) }
        return try VarlinkListener(inherited: item.descriptor)
    }

    /// The `url` of `GetInfo`: the home page of the project, which the package sets as `FRESHET_HOMEPAGE`. The sources
    /// know none; without it, the URL is the manual page, as in `Documentation=` of systemd's units.
    ///
    /// Clients may print the URL or open it, so it is one of the web, and has only printable ASCII characters, at most
    /// `urlBytes` of them.
    nonisolated static func url(environment: [String: String]) -> String {
        guard let url = environment["FRESHET_HOMEPAGE"]?.utf8, (1...urlBytes).contains(url.count),
            url.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return "man:freshetd(8)" }
        let text = String(url)
        let isOfWeb = ["https://", "http://"].contains { scheme in
            text.utf8.count > scheme.utf8.count && text.lowercased().hasPrefix(scheme)
        }
        return isOfWeb ? text : "man:freshetd(8)"
    }

    private static func rights() -> ControlRights {
        let user = geteuid()
        var group: UInt32?
        if let entry = getgrnam("freshet") { group = entry.pointee.gr_gid }
        return ControlRights(
            daemonUser: user, isSystemDaemon: user != 0 && user < firstOrdinaryUser, changingGroup: group)
    }

    /// Watches the name of the socket, and creates the socket again if the name is removed. Without it no client could
    /// reach the daemon, not even to reload it.
    private func keepInPlace(_ path: String) {
        do {
            watch = try watchDirectory(of: path)
        } catch {
            context.log.log(.socketUnwatched, [.error: .string("\(error)")])
        }
    }

    private func watchDirectory(of path: String) throws -> DirectoryWatch {
        try DirectoryWatch(context.loop, path: Self.directory(of: path)) { [weak self, tasks = context.tasks] in
            tasks.add { [weak self] in await self?.repair(path) }
        }
    }

    private func repair(_ path: String) {
        guard !server.isInPlace else { return }
        do {
            try DaemonDirectories.make(Self.directory(of: path), mode: 0o755)
            // The directory may be a new one. The watch starts before the socket is created, so that no removal is
            // missed.
            watch = try watchDirectory(of: path)
            try server.change(to: VarlinkListener(path: path))
            isLost = false
            context.flapLog.log(.socketRepaired, about: path, [.socket: .string(path)])
        } catch {
            guard !isLost else { return }
            isLost = true
            context.flapLog.log(
                .socketLost, about: path, [.socket: .string(path), .error: .string("\(error)")])
        }
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// An error of the sockets that the service manager passed.
enum ActivationError: Error, Hashable, CustomStringConvertible {
    case several([String])
    case misnamed(String)

    var description: String {
        switch self {
        case .several(let names):
            "the service manager passed \(names.count) sockets (\(names.joined(separator: ", "))), but freshetd "
                + "accepts only one: keep one ListenStream= in freshetd.socket"
        case .misnamed(let name):
            "the service manager passed a socket with the name '\(name)': "
                + "freshetd.socket needs FileDescriptorName=\(ControlSocket.name)"
        }
    }
}
