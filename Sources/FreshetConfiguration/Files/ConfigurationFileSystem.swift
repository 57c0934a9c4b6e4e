/// What reading a configuration asks of a file system. ``HostFileSystem`` is the real one, ``InMemoryFileSystem`` its
/// twin for tests.
package protocol ConfigurationFileSystem: Sendable {
    /// The names in a directory, in no order, without `.` and `..`; nil if there is no such directory.
    func names(inDirectory path: String) throws(FileError) -> [String]?

    /// What a file holds.
    ///
    /// - Parameter limit: The most bytes that are read; a larger file is a fault.
    func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent
}

/// What was found under a file's name.
package enum FileContent: Hashable, Sendable {
    case bytes([UInt8])
    /// The null device, as a rule through a symbolic link: the file is to count as not there, here and below.
    case masked
    /// Nothing: it went away after its directory was listed.
    case absent
}

/// Why a file or directory could not be read.
package struct FileError: Error, Hashable, Sendable {
    /// What is wrong, as a message has it after the file's name.
    package var message: String
    /// What to do about it.
    package var remedy: String?

    package init(message: String, remedy: String? = nil) {
        self.message = message
        self.remedy = remedy
    }

    /// The user may not read it.
    package static func forbidden(to user: String, reason: String) -> FileError {
        FileError(
            message: "the user \(user.quoted) may not read this: \(reason)",
            remedy: "give that user the right to read it and to search the directories above it (chown, chmod)")
    }

    static func tooLarge(limit: Int) -> FileError {
        FileError(
            message: "the file is larger than \(limit >> 10) KiB", remedy: "divide it, or remove what is not needed")
    }

    static var danglingLink: FileError {
        FileError(
            message: "the link points to a file that does not exist",
            remedy: "remove the link, or point it to /dev/null to hide the files of this name below")
    }

    static var notRegular: FileError {
        FileError(message: "this is not a regular file", remedy: "replace it by one, or give it another name")
    }
}
