public import FreshetEventLoop
import Glibc

/// A listening Unix socket: created at a path, or inherited from the service manager.
public final class VarlinkListener: Sendable {
    /// Why a listener could not be made.
    public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        case system(SystemCallError)
        /// Another process listens at the path.
        case inUse(path: String)
        /// The path is not a socket.
        case notASocket(path: String)
        /// An inherited descriptor is not a listening Unix stream socket.
        case unsuitable(descriptor: Int32)
        /// The path, or the temporary name beside it, is longer than a socket's address.
        case pathTooLong(path: String, limit: Int)

        public var description: String {
            switch self {
            case .system(let error): error.description
            case .inUse(let path): "another process listens on '\(path)'; stop it first"
            case .notASocket(let path): "'\(path)' exists and is not a socket; remove it, or choose another path"
            case .unsuitable(let descriptor):
                "the inherited descriptor \(descriptor) is not a listening Unix stream socket; "
                    + "a socket unit needs ListenStream= with a path, and Accept=no"
            case .pathTooLong(let path, let limit):
                "the path '\(path)' is too long for a socket, which may have \(limit) bytes; choose a shorter one"
            }
        }
    }

    /// The most connections that the kernel queues until the server accepts them.
    static let backlog: Int32 = 128

    let descriptor: OwnedDescriptor
    /// Nil for an inherited socket without a name in the file system.
    private let place: Place?
    private let isInherited: Bool

    /// The path and the file identity of the socket, so that the socket of a successor is never removed.
    private struct Place: Sendable {
        var path: String
        var device: UInt64
        var inode: UInt64

        /// The file that is at a path now; nil: no file.
        init?(path: String) {
            var info = stat()
            guard lstat(path, &info) == 0 else { return nil }
            self.init(path: path, info)
        }

        init(path: String, _ info: stat) {
            self.path = path
            device = UInt64(info.st_dev)
            inode = UInt64(info.st_ino)
        }
    }

    /// The path of the socket; nil for an inherited socket without a path.
    public var path: String? { place?.path }

    /// Whether the socket is still at its path: false if its name was removed, or another file is there.
    public var isInPlace: Bool {
        guard let place else { return true }
        guard let found = Place(path: place.path) else { return false }
        return found.device == place.device && found.inode == place.inode
    }

    /// Creates a socket at a path with mode 0666: rights are checked for each call.
    ///
    /// A socket on which no process listens, such as after a crash, is replaced atomically; a socket on which a process
    /// listens is not changed. ``close()`` removes the socket.
    public init(path: String) throws(Failure) {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { path[...$0] } ?? ""
        let temporary = "\(directory).\(getpid())"
        guard let final = UnixAddress(path: path), let address = UnixAddress(path: temporary) else {
            throw .pathTooLong(path: path, limit: UnixAddress.pathLimit)
        }
        isInherited = false
        try Self.refuseToReplace(final, path)
        descriptor = try Self.makeSocket()
        // A file with this name can only be from an earlier process with the same process ID.
        unlink(temporary)
        try Self.check(address.apply(bind, to: descriptor), "bind", path)
        do throws(Failure) {
            try Self.check(chmod(temporary, 0o666) == 0 ? 0 : errno, "chmod", path)
            try Self.check(listen(descriptor.rawValue, Self.backlog) == 0 ? 0 : errno, "listen", path)
            var info = stat()
            try Self.check(lstat(temporary, &info) == 0 ? 0 : errno, "lstat", path)
            place = Place(path: path, info)
            try Self.check(rename(temporary, path) == 0 ? 0 : errno, "rename", path)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Takes over a listening socket of socket activation (sd_listen_fds(3)) and owns its descriptor, which no child
    /// process inherits from now on. ``close()`` does not remove its path.
    public init(inherited descriptor: Int32) throws(Failure) {
        let owned = OwnedDescriptor(descriptor)
        guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1, Self.option(SO_DOMAIN, of: descriptor) == AF_UNIX,
            Self.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
        else { throw .unsuitable(descriptor: descriptor) }
        let flags = fcntl(descriptor, F_GETFL)
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.descriptor = owned
        place = UnixAddress(of: owned)?.path.flatMap(Place.init(path:))
        isInherited = true
    }

    private static func option(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }

    /// Accepts and closes all waiting connections, for a process that cannot serve and is about to end. Each client gets
    /// the error, whatever it calls.
    ///
    /// Otherwise a service manager that keeps the socket would immediately start the process again for each waiting
    /// client, until the service manager gives up the socket.
    public func turnAway(with error: VarlinkErrorReply) {
        let reply = VarlinkReplyMessage(parameters: error.parameters, error: error.name).encoded
        while true {
            let client = accept(descriptor.rawValue, nil, nil)
            if client >= 0 {
                // The client may not have sent its call yet. The buffer of a new connection takes the whole reply.
                _ = reply.withUnsafeBytes { send(client, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) }
                Glibc.close(client)
            } else if errno != EINTR && errno != ECONNABORTED {
                return
            }
        }
    }

    /// Removes the socket's name if this process created the socket and the name still belongs to it. Existing
    /// connections stay open.
    public func close() {
        guard !isInherited, let place, isInPlace else { return }
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

    /// Throws if the file at the path is not a socket, or is a socket on which a process listens.
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
