import Glibc

/// A file descriptor that is closed when this object is released.
public final class OwnedDescriptor: Sendable {
    /// The descriptor, valid as long as this object lives. Do not close it.
    public let rawValue: Int32

    /// Takes ownership of an open descriptor.
    public init(_ rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Takes ownership of the descriptor that a call returned, or throws the call's error if the result is negative.
    public convenience init(
        _ result: Int32, of call: String, subject: String? = nil
    ) throws(SystemCallError) {
        guard result >= 0 else { throw SystemCallError(call, errno: errno, subject: subject) }
        self.init(result)
    }

    deinit { close(rawValue) }
}
