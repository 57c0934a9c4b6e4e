import FreshetEventLoop
import Glibc

/// A published file, opened with the rights of the caller at the path that the daemon names.
///
/// The user who controls the daemon's socket controls that path. The file is not opened unless it is a regular file, is
/// not a link, and belongs to the user who owns the socket's directory: that user can read such a file anyway, so a
/// path to another user's file reveals nothing.
struct PublishedFile: ~Copyable {
    struct Failure: Error {
        /// The reason, without the path.
        var reason: String
        var isPermissionDenied = false
    }

    /// O_PATH (asm-generic/fcntl.h), which Glibc's module does not have.
    private static let pathOnly: Int32 = 0o10_000_000

    private let descriptor: OwnedDescriptor
    /// Bytes, when the file was opened.
    let size: Int64

    /// - Parameters:
    ///   - path: the path that the daemon names.
    ///   - directory: the directory of the daemon's socket.
    init(_ path: String, ownedAs directory: String) throws(Failure) {
        var owner = stat()
        guard stat(directory, &owner) == 0 else { throw Self.failure(errno) }
        // As O_PATH: open(2) has no effect on a device and does not wait for a FIFO's writer. The descriptor stays on
        // the file that is checked, whatever happens to its name.
        let found = open(path, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        guard found >= 0 else { throw Self.failure(errno) }
        defer { close(found) }
        var status = stat()
        guard fstat(found, &status) == 0 else { throw Self.failure(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Failure(reason: "it is not a regular file") }
        guard status.st_uid == owner.st_uid else {
            throw Failure(reason: "it belongs to the user \(status.st_uid), and the daemon's files to \(owner.st_uid)")
        }
        let opened = open("/proc/self/fd/\(found)", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard opened >= 0 else { throw Self.failure(errno) }
        descriptor = OwnedDescriptor(opened)
        size = Int64(status.st_size)
    }

    /// Reads the bytes that the file had when it was opened, piece by piece, until `each` returns false.
    func read(_ each: (ArraySlice<UInt8>) -> Bool) throws(Failure) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var rest = size
        while rest > 0 {
            let count = Glibc.read(descriptor.rawValue, &buffer, min(buffer.count, Int(clamping: rest)))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure(errno) }
            guard count > 0 else { throw Failure(reason: "it ends before its \(size) bytes") }
            rest -= Int64(count)
            guard each(buffer[..<count]) else { return }
        }
    }

    private static func failure(_ code: Int32) -> Failure {
        Failure(
            reason: strerror(code).map { String(cString: $0) } ?? "error \(code)",
            isPermissionDenied: code == EACCES || code == EPERM)
    }
}
