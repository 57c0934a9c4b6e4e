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
        /// A descriptor that was passed is no listening Unix stream socket.
        case unsuitable(descriptor: Int32)
        /// The path, or the temporary name beside it, is longer than a socket's address.
        case pathTooLong(path: String, limit: Int)

        public var description: String {
            switch self {
            case .system(let error): error.description
            case .inUse(let path): "another process listens on '\(path)'; stop it first"
            case .notASocket(let path): "'\(path)' exists and is not a socket; remove it, or choose another path"
            case .unsuitable(let descriptor):
                "the inherited descriptor \(descriptor) is no Unix stream socket that listens; "
                    + "a socket unit needs ListenStream= with a path, and Accept=no"
            case .pathTooLong(let path, let limit):
                "the path '\(path)' is too long for a socket, which may have \(limit) bytes; choose a shorter one"
            }
        }
    }

    /// Connections that the kernel keeps for us until they are accepted.
    static let backlog: Int32 = 128

    let descriptor: OwnedDescriptor
    /// Nil for one that was passed and has no name in the file system.
    private let place: Place?
    private let isInherited: Bool

    /// Where the socket is, and which file it is, so that a successor's is never removed.
    private struct Place: Sendable {
        var path: String
        var device: UInt64
        var inode: UInt64

        /// What is at a path now, or nil.
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

    /// Where clients find it; nil if it was passed and has no path.
    public var path: String? { place?.path }

    /// Whether clients still find it at its path: false when its name was removed, or another file is there.
    public var isInPlace: Bool {
        guard let place else { return true }
        guard let found = Place(path: place.path) else { return false }
        return found.device == place.device && found.inode == place.inode
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
        isInherited = false
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
            place = Place(path: path, info)
            try Self.check(rename(temporary, path) == 0 ? 0 : errno, "rename", path)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Takes over a socket that listens already, as socket activation passes it (sd_listen_fds(3)), and its descriptor,
    /// which no child process inherits from now on; ``close()`` leaves its path alone.
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

    /// Accepts and closes what waits: for a process that cannot serve and is about to end.
    ///
    /// A service manager that keeps the socket would start the process again at once for a client that still waits,
    /// and again, until it gives up the socket too.
    public func turnAway() {
        while true {
            let client = accept(descriptor.rawValue, nil, nil)
            if client >= 0 {
                Glibc.close(client)
            } else if errno != EINTR && errno != ECONNABORTED {
                return
            }
        }
    }

    /// Removes the socket's name, if it is this process's to remove and still this socket's. Connections that were made
    /// go on.
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
