/// An error of SQLite, with its message.
package struct SQLiteError: Error, Hashable, Sendable {
    /// The extended result code (sqlite.org/rescode.html).
    package let code: Int32
    /// SQLite's message.
    package let message: String
    /// The operation that failed: a statement or "open".
    package let during: String
    /// The number of the system's error (errno) of an error of input and output; 0: none.
    package let systemError: Int32

    package init(code: Int32, message: String, during: String, systemError: Int32 = 0) {
        self.systemError = systemError
        self.code = code
        self.message = message
        self.during = during
    }

    /// The primary result code: the lowest byte of the extended one.
    package var primaryCode: Int32 { code & 0xff }
}
