/// A failed system call, with its path and error number.
package struct SystemCallError: Error, Hashable, Sendable {
    /// The name of the call, as in section 2 of the manual.
    package let call: String
    /// The path that the call used.
    package let path: String
    /// The error number.
    package let errno: Int32

    package init(call: String, path: String, errno: Int32) {
        self.call = call
        self.path = path
        self.errno = errno
    }
}
