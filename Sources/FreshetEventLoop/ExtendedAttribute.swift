import CLinux
import Glibc

/// Extended attributes of files (xattr(7)): access control lists, labels, and user-defined values.
package enum ExtendedAttribute {
    /// The access control list (acl(5)). If a file has one, the mode's group bits are the maximum rights of every
    /// group.
    package static let accessList = "system.posix_acl_access"

    /// The value of a file's attribute; nil if the file does not have it, or its file system does not support such
    /// attributes.
    package static func value(_ name: String, of path: String) throws(SystemCallError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: mostBytes)
        let count = getxattr(path, name, &buffer, buffer.count)
        guard count < 0 else { return Array(buffer[..<count]) }
        if isAbsence(errno) { return nil }
        throw SystemCallError("getxattr", errno: errno, subject: path)
    }

    /// The names of a file's attributes that this user may see.
    package static func names(of path: String) -> [String] {
        var buffer = [UInt8](repeating: 0, count: mostBytes)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) { listxattr(path, $0.baseAddress, $0.count) }
        }
        return buffer[..<max(0, count)].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Sets an attribute of an open file.
    package static func set(_ name: String, to value: [UInt8], of descriptor: Int32) throws(SystemCallError) {
        guard fsetxattr(descriptor, name, value, value.count, 0) == 0 else {
            throw SystemCallError("fsetxattr", errno: errno, subject: name)
        }
    }

    /// Removes an attribute of an open file, if the file has it.
    package static func remove(_ name: String, of descriptor: Int32) throws(SystemCallError) {
        guard fremovexattr(descriptor, name) == 0 || isAbsence(errno) else {
            throw SystemCallError("fremovexattr", errno: errno, subject: name)
        }
    }

    /// XATTR_SIZE_MAX and XATTR_LIST_MAX (linux/limits.h): the kernel's limit for a value, and for the list of names.
    private static let mostBytes = 65_536

    private static func isAbsence(_ error: Int32) -> Bool { error == ENODATA || error == EOPNOTSUPP }
}
