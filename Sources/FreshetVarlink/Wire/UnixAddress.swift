import FreshetEventLoop
import Glibc

/// The address of a Unix socket in the file system.
struct UnixAddress {
    /// The most bytes of a path: `sun_path` has 108 bytes, including the final NUL (unix(7)).
    static let pathLimit = 107

    private var address = sockaddr_un()

    /// Nil if the path is empty, has a NUL, or is too long.
    init?(path: String) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.pathLimit, !bytes.contains(0) else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    }

    /// The address to which a socket is bound; nil if the kernel does not report it.
    init?(of descriptor: OwnedDescriptor) {
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor.rawValue, $0, &length) }
        }
        guard result == 0, length <= MemoryLayout<sockaddr_un>.size else { return nil }
    }

    /// The path; nil for an abstract name, which begins with NUL, and for an unbound socket.
    var path: String? {
        withUnsafeBytes(of: address.sun_path) { bytes in
            let name = bytes.prefix { $0 != 0 }
            return name.isEmpty ? nil : String(decoding: name, as: UTF8.self)
        }
    }

    /// Creates a stream socket that no child process inherits.
    static func makeSocket(flags: Int32 = 0) throws(SystemCallError) -> OwnedDescriptor {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | flags
        return try OwnedDescriptor(socket(AF_UNIX, kind, 0), of: "socket")
    }

    /// Calls connect(2) or bind(2); returns 0, or an error number.
    func apply(
        _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, to descriptor: OwnedDescriptor
    ) -> Int32 {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call(descriptor.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 ? 0 : errno
            }
        }
    }
}
