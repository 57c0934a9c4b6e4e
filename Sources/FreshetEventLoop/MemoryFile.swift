import CLinux
import Glibc

extension OwnedDescriptor {
    /// A file in memory (memfd_create(2)) with these bytes, positioned at its beginning. It is in no directory: while
    /// this process lives, permitted processes can open it as `/proc/PID/fd/N`. It is closed when a program is
    /// executed.
    ///
    /// - Parameter name: The name that /proc shows, at most 249 bytes.
    package static func memoryFile(_ name: String, _ bytes: [UInt8]) throws(SystemCallError) -> OwnedDescriptor {
        let file = try OwnedDescriptor(memfd_create(name, UInt32(MFD_CLOEXEC)), of: "memfd_create")
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file.rawValue, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemCallError("write", errno: errno, subject: name) }
            rest = rest.dropFirst(count)
        }
        guard lseek(file.rawValue, 0, SEEK_SET) == 0 else {
            throw SystemCallError("lseek", errno: errno, subject: name)
        }
        return file
    }

    /// A path at which other programs of this user can open the same file while this process keeps it open.
    package var pathForOthers: String { "/proc/\(getpid())/fd/\(rawValue)" }
}
