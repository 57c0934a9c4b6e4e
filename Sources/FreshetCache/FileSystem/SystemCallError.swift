/// A system call that failed: which, on what, and why.
package struct SystemCallError: Error, Hashable, Sendable {
    /// The call's name, as in section 2 of the manual.
    package let call: String
    /// What it was about.
    package let path: String
    /// The error number.
    package let errno: Int32

    package init(call: String, path: String, errno: Int32) {
        self.call = call
        self.path = path
        self.errno = errno
    }
}
