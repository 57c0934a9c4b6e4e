import CLinux
import Glibc

/// A failed system call: its name, its subject, and the kernel's reason.
///
/// `description` is one sentence, such as `open '/etc/freshet/jwks.yaml': Permission denied (EACCES)`.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call's name as in its man page, such as `epoll_ctl`.
    public let call: String
    /// The value of `errno(3)` after the call.
    public let errno: Int32
    /// The subject of the call (a path, a descriptor, a command), or nil if the name is sufficient.
    public let subject: String?

    /// Makes an error from a call's name and an error number. Pass `errno` immediately, before anything else runs.
    public init(_ call: String, errno: Int32, subject: String? = nil) {
        self.call = call
        self.errno = errno
        self.subject = subject
    }

    /// The kernel's reason in words, such as `Permission denied`.
    public var reason: String {
        strerrordesc_np(errno).map { String(cString: $0) } ?? "error \(errno)"
    }

    public var description: String {
        let name = strerrorname_np(errno).map { " (\(String(cString: $0)))" } ?? ""
        return subject.map { "\(call) '\($0)': \(reason)\(name)" } ?? "\(call): \(reason)\(name)"
    }
}
