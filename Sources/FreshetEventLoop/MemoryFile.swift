import CLinux
import Glibc

extension OwnedDescriptor {
    /// A file in memory (memfd_create(2)) with these bytes, to be read from its beginning. No directory has it: as long
    /// as this process lives, those who may look into it open `/proc/PID/fd/N`. It is closed when a program is executed.
    ///
    /// - Parameter name: what /proc shows, at most 249 bytes.
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

    /// A path by which other programs of this user open the same file, as long as this process has it.
    package var pathForOthers: String { "/proc/\(getpid())/fd/\(rawValue)" }
}
