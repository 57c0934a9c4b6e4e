import FreshetControl
import FreshetEventLoop
import FreshetSystemd
import FreshetVarlink
import Logging

/// Where the control socket comes from: the service manager, or this process.
extension Supervisor {
    /// The name that the socket unit gives it (`FileDescriptorName=`).
    static let socketName = "varlink"

    /// The socket that the service manager passed; nil if it passed none.
    ///
    /// - Throws: ``ActivationError`` or ``VarlinkListener/Failure``, neither of which trying again mends.
    static func inheritedListener(_ passed: [ListenDescriptors.Item]) throws -> VarlinkListener? {
        guard let item = passed.first else { return nil }
        guard passed.count == 1 else { throw ActivationError.several(passed.map(\.name)) }
        guard item.name == socketName else { throw ActivationError.misnamed(item.name) }
        return try VarlinkListener(inherited: item.descriptor)
    }

    /// Notices from now on when the socket's name is removed, and makes it again: nobody could reach the daemon, not
    /// even to reload it.
    func keepSocket(of server: VarlinkServer, at path: String) {
        do {
            socketWatch = try watchSocket(of: server, at: path)
        } catch {
            log.say(.socketUnwatched, [.error: .string("\(error)")])
        }
    }

    private func watchSocket(of server: VarlinkServer, at path: String) throws -> DirectoryWatch {
        try DirectoryWatch(loop, path: Self.directory(of: path)) { [weak self, weak server] in
            self?.adopt { [weak self, weak server] in
                if let server { await self?.mendSocket(of: server, at: path) }
            }
        }
    }

    private func mendSocket(of server: VarlinkServer, at path: String) {
        guard !server.isInPlace else { return }
        do {
            try Self.makeDirectory(Self.directory(of: path), mode: 0o755)
            // The directory may be another one. It is watched before the socket is made, so that no moment is missed.
            socketWatch = try watchSocket(of: server, at: path)
            try server.change(to: VarlinkListener(path: path))
            isSocketLost = false
            log.say(.socketMended, [.socket: .string(path)])
        } catch {
            guard !isSocketLost else { return }
            isSocketLost = true
            log.say(.socketLost, [.socket: .string(path), .error: .string("\(error)")])
        }
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// What is wrong with the sockets that the service manager passed.
enum ActivationError: Error, Hashable, CustomStringConvertible {
    case several([String])
    case misnamed(String)

    var description: String {
        switch self {
        case .several(let names):
            "the service manager passed \(names.count) sockets (\(names.joined(separator: ", "))), and one is wanted: "
                + "keep one ListenStream= in freshetd.socket"
        case .misnamed(let name):
            "the service manager passed a socket by the name '\(name)': "
                + "freshetd.socket needs FileDescriptorName=\(Supervisor.socketName)"
        }
    }
}
