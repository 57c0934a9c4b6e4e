import CLinux
import Glibc

/// Attributes of files beside their mode (xattr(7)): access control lists, labels, and what users note.
package enum ExtendedAttribute {
    /// The list of those who have other rights than the mode says (acl(5)). Where there is one, the mode's bits for the
    /// group are the most that anybody in it may.
    package static let accessList = "system.posix_acl_access"

    /// What a file has of this name; nil: nothing, or its file system has no such attributes.
    package static func value(_ name: String, of path: String) throws(SystemCallError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: mostBytes)
        let count = getxattr(path, name, &buffer, buffer.count)
        guard count < 0 else { return Array(buffer[..<count]) }
        if isAbsence(errno) { return nil }
        throw SystemCallError("getxattr", errno: errno, subject: path)
    }

    /// The names of those that a file has, as far as this user may see them.
    package static func names(of path: String) -> [String] {
        var buffer = [UInt8](repeating: 0, count: mostBytes)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) { listxattr(path, $0.baseAddress, $0.count) }
        }
        return buffer[..<max(0, count)].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Gives an open file such an attribute, or another value of it.
    package static func set(_ name: String, to value: [UInt8], of descriptor: Int32) throws(SystemCallError) {
        guard fsetxattr(descriptor, name, value, value.count, 0) == 0 else {
            throw SystemCallError("fsetxattr", errno: errno, subject: name)
        }
    }

    /// Takes such an attribute from an open file, if it has it.
    package static func remove(_ name: String, of descriptor: Int32) throws(SystemCallError) {
        guard fremovexattr(descriptor, name) == 0 || isAbsence(errno) else {
            throw SystemCallError("fremovexattr", errno: errno, subject: name)
        }
    }

    /// XATTR_SIZE_MAX and XATTR_LIST_MAX (linux/limits.h): the kernel has no more of a value, or of names.
    private static let mostBytes = 65_536

    private static func isAbsence(_ error: Int32) -> Bool { error == ENODATA || error == EOPNOTSUPP }
}
