import FreshetControl
import FreshetEventLoop
import FreshetSystemd
import FreshetVarlink
import Logging

/// The control socket, which the service manager passes or the daemon creates.
extension Supervisor {
    /// The name of the socket in the socket unit (`FileDescriptorName=`).
    static let socketName = "varlink"

    /// The socket that the service manager passed; nil if it passed none.
    ///
    /// - Throws: ``ActivationError`` or ``VarlinkListener/Failure``; a retry does not help with either.
    static func inheritedListener(_ passed: [ListenDescriptors.Item]) throws -> VarlinkListener? {
        guard let item = passed.first else { return nil }
        guard passed.count == 1 else { throw ActivationError.several(passed.map(\.name)) }
        guard item.name == socketName else { throw ActivationError.misnamed(item.name) }
        return try VarlinkListener(inherited: item.descriptor)
    }

    /// Watches the name of the socket, and creates the socket again if the name is removed. Without it no client could
    /// reach the daemon, not even to reload it.
    func keepSocket(of server: VarlinkServer, at path: String) {
        do {
            socketWatch = try watchSocket(of: server, at: path)
        } catch {
            log.log(.socketUnwatched, [.error: .string("\(error)")])
        }
    }

    private func watchSocket(of server: VarlinkServer, at path: String) throws -> DirectoryWatch {
        try DirectoryWatch(loop, path: Self.directory(of: path)) { [weak self, weak server] in
            self?.adopt { [weak self, weak server] in
                if let server { await self?.repairSocket(of: server, at: path) }
            }
        }
    }

    private func repairSocket(of server: VarlinkServer, at path: String) {
        guard !server.isInPlace else { return }
        do {
            try Self.makeDirectory(Self.directory(of: path), mode: 0o755)
            // The directory may be a new one. The watch starts before the socket is created, so that no removal is
            // missed.
            socketWatch = try watchSocket(of: server, at: path)
            try server.change(to: VarlinkListener(path: path))
            isSocketLost = false
            flapLog.log(.socketRepaired, about: path, [.socket: .string(path)])
        } catch {
            guard !isSocketLost else { return }
            isSocketLost = true
            flapLog.log(
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
                + "freshetd.socket needs FileDescriptorName=\(Supervisor.socketName)"
        }
    }
}
