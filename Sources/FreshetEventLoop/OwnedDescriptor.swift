import Glibc

/// A file descriptor that is closed when its owner goes away.
public final class OwnedDescriptor: Sendable {
    /// The descriptor, valid as long as this object lives. Do not close it.
    public let rawValue: Int32

    /// Takes over an open descriptor.
    public init(_ rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Takes over what a call returned, or throws its error if that is negative.
    public convenience init(
        _ result: Int32, of call: String, subject: String? = nil
    ) throws(SystemCallError) {
        guard result >= 0 else { throw SystemCallError(call, errno: errno, subject: subject) }
        self.init(result)
    }

    deinit { close(rawValue) }
}
