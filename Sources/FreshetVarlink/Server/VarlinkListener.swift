public import FreshetEventLoop
import Glibc

/// A Unix socket that listens: made at a path, or inherited from a service manager.
public final class VarlinkListener: Sendable {
    /// Why a listener could not be made.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        case system(SystemCallError)
        /// Another process listens at the path.
        case inUse(path: String)
        /// Something that is not a socket is at the path.
        case notASocket(path: String)
        /// The path, or the temporary name beside it, is longer than a socket's address.
        case pathTooLong(path: String, limit: Int)

        public var description: String {
            switch self {
            case .system(let error): error.description
            case .inUse(let path): "another process listens on '\(path)'; stop it first"
            case .notASocket(let path): "'\(path)' exists and is not a socket; remove it, or choose another path"
            case .pathTooLong(let path, let limit):
                "the path '\(path)' is too long for a socket, which may have \(limit) bytes; choose a shorter one"
            }
        }
    }

    /// Connections that the kernel keeps for us until they are accepted.
    static let backlog: Int32 = 128

    let descriptor: OwnedDescriptor
    private let place: Place?

    /// Where the socket is, and which file it is, so that a successor's is never removed.
    private struct Place: Sendable {
        var path: String
        var device: UInt64
        var inode: UInt64
    }

    /// Makes a socket at a path, with mode 0666: who may do what is decided for each call.
    ///
    /// A socket that nobody listens on any more, as a crash leaves it, is replaced in one step; one that somebody
    /// listens on is left alone. Its own is removed by ``close()``.
    public init(path: String) throws(Failure) {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { path[...$0] } ?? ""
        let temporary = "\(directory).\(getpid())"
        guard let final = UnixAddress(path: path), let address = UnixAddress(path: temporary) else {
            throw .pathTooLong(path: path, limit: UnixAddress.pathLimit)
        }
        try Self.refuseToReplace(final, path)
        descriptor = try Self.makeSocket()
        // A name of this process's own that is there can only be from an earlier process of the same number.
        unlink(temporary)
        try Self.check(address.apply(bind, to: descriptor), "bind", path)
        do throws(Failure) {
            try Self.check(chmod(temporary, 0o666) == 0 ? 0 : errno, "chmod", path)
            try Self.check(listen(descriptor.rawValue, Self.backlog) == 0 ? 0 : errno, "listen", path)
            var info = stat()
            try Self.check(lstat(temporary, &info) == 0 ? 0 : errno, "lstat", path)
            place = Place(path: path, device: UInt64(info.st_dev), inode: UInt64(info.st_ino))
            try Self.check(rename(temporary, path) == 0 ? 0 : errno, "rename", path)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Takes over a socket that listens already, such as one from socket activation; ``close()`` leaves its path alone.
    public init(inherited descriptor: Int32) throws(Failure) {
        let owned = OwnedDescriptor(descriptor)
        var listens: Int32 = 0
        var length = socklen_t(4)
        let result = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length)
        guard result == 0, listens == 1 else {
            let reason = result == 0 ? EINVAL : errno
            throw .system(SystemCallError("getsockopt", errno: reason, subject: "descriptor \(descriptor)"))
        }
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.descriptor = owned
        place = nil
    }

    /// Removes the socket's name, if it is still this one's. Connections that were made go on.
    public func close() {
        guard let place else { return }
        var info = stat()
        guard lstat(place.path, &info) == 0, UInt64(info.st_dev) == place.device, UInt64(info.st_ino) == place.inode
        else { return }
        unlink(place.path)
    }

    deinit { close() }

    private static func check(_ reason: Int32, _ call: String, _ path: String) throws(Failure) {
        if reason != 0 { throw .system(SystemCallError(call, errno: reason, subject: path)) }
    }

    private static func makeSocket() throws(Failure) -> OwnedDescriptor {
        do {
            return try UnixAddress.makeSocket(flags: Int32(SOCK_NONBLOCK.rawValue))
        } catch {
            throw .system(error)
        }
    }

    /// Throws if what is at the path is not a socket, or is one that somebody listens on.
    private static func refuseToReplace(_ address: UnixAddress, _ path: String) throws(Failure) {
        var info = stat()
        guard lstat(path, &info) == 0 else { return }
        guard info.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
        switch address.apply(connect, to: try makeSocket()) {
        case ECONNREFUSED, ENOENT: return
        // EAGAIN: its queue of connections is full.
        case 0, EAGAIN: throw .inUse(path: path)
        case let reason: throw .system(SystemCallError("connect", errno: reason, subject: path))
        }
    }
}
