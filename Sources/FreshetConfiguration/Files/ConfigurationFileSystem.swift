/// The file system operations that reading a configuration needs. ``HostFileSystem`` is the real one.
package protocol ConfigurationFileSystem: Sendable {
    /// The names in a directory, in no order, without `.` and `..`; nil if there is no such directory.
    func names(inDirectory path: String) throws(FileError) -> [String]?

    /// The content of a file.
    ///
    /// - Parameter limit: The largest size in bytes; a larger file is an error.
    func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent

    /// The same files for one load: what is known about a directory need not be found out again for each of its files.
    func forOneLoad() -> any ConfigurationFileSystem
}

extension ConfigurationFileSystem {
    package func forOneLoad() -> any ConfigurationFileSystem { self }
}

/// The content of a configuration file, or the reason why it has no content.
package enum FileContent: Hashable, Sendable {
    case bytes([UInt8])
    /// The file is the null device, usually through a symbolic link: files of this name in this directory and in
    /// directories of lower priority are not used.
    case masked
    /// The file does not exist: it was removed after its directory was listed.
    case absent

    /// The content, which was read earlier, perhaps with a higher limit; an error if it has more bytes than the limit.
    func within(_ limit: Int) throws(FileError) -> FileContent {
        if case .bytes(let bytes) = self, bytes.count > limit { throw .tooLarge(limit: limit) }
        return self
    }
}

/// The error of a file or directory that could not be read.
package struct FileError: Error, Hashable, Sendable {
    /// The error, without the file's name.
    package var message: String
    /// How to correct the error.
    package var remedy: String?

    package init(message: String, remedy: String? = nil) {
        self.message = message
        self.remedy = remedy
    }

    /// The user has no permission to read the file or directory.
    package static func forbidden(to user: String, reason: String) -> FileError {
        FileError(
            message: "the user \(user.quoted) may not read this: \(reason)",
            remedy: "give this user permission to read it and to search the directories above it (chown, chmod)")
    }

    /// The file is larger than the limit in bytes.
    package static func tooLarge(limit: Int) -> FileError {
        FileError(
            message: "the file is larger than \(limit >> 10) KiB", remedy: "split it, or remove what is not needed")
    }

    static var danglingLink: FileError {
        FileError(
            message: "the link points to a file that does not exist",
            remedy: "remove the link, or point it to /dev/null to hide files of this name in other directories")
    }

    /// The path does not lead to a regular file.
    package static var notRegular: FileError {
        FileError(message: "this is not a regular file", remedy: "replace it with a regular file, or rename it")
    }
}
