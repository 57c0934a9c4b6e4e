/// Identifies the state of a file: if two of these values are equal, the file has not changed.
///
/// The time of the last status change is included: a program that restores the modification time after an edit still
/// changes the status time.
struct FileIdentity: Hashable, Sendable {
    var inode: UInt64
    /// Bytes.
    var size: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
    /// Nanoseconds since 1970.
    var changed: Int64

    /// The identity of a missing file.
    static let none = FileIdentity(inode: 0, size: 0, modified: 0, changed: 0)

    /// Whether readers have not seen the content under the current name of the copy: no file has the inode 0.
    var isOfFormerName: Bool { inode == 0 }
}

/// The fields of `stat` that the cache uses.
struct FileStatus: Hashable, Sendable {
    var identity: FileIdentity
    /// The permission bits only.
    var mode: UInt32
    /// The group that owns the file.
    var group: UInt32
    /// The user who owns the file.
    var owner: UInt32 = 0
    /// The number of names of the inode.
    var links: UInt64
    var isRegularFile: Bool
    var isDirectory = false
}

/// A name in a directory.
struct DirectoryEntry: Hashable, Sendable {
    var name: String
    var inode: UInt64
}

/// The space of a file system, in bytes, as unprivileged processes can use it.
struct FileSystemSpace: Hashable, Sendable {
    var total: UInt64
    var available: UInt64
    /// Whether new files can be made. A file system without a fixed number of inodes always has some.
    var hasInodes = true
}

/// The system calls on the cache directory, one method each, so that a test can make each of them fail.
///
/// Paths are absolute. No method follows a symbolic link in the last component. If the parent directory is a symbolic
/// link, no method creates or opens files in it. All methods may block.
protocol FileSystem: Sendable {
    /// Makes a directory and sets its mode. An existing directory gets the mode too. Returns true if the directory was
    /// made.
    func makeDirectory(_ path: String, mode: UInt32) throws(SystemCallError) -> Bool
    /// Creates a file for writing that only its owner can read; the name must be free.
    func createFile(_ path: String) throws(SystemCallError) -> Int32
    func openFile(_ path: String) throws(SystemCallError) -> Int32
    func openDirectory(_ path: String) throws(SystemCallError) -> Int32
    /// Writes all of `bytes`.
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(SystemCallError)
    /// Reads the next bytes, at most as many as `buffer` holds; 0 means the end.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, path: String
    ) throws(SystemCallError) -> Int
    func setMode(_ mode: UInt32, of descriptor: Int32, path: String) throws(SystemCallError)
    func setGroup(_ group: UInt32, of descriptor: Int32, path: String) throws(SystemCallError)
    func synchronize(_ descriptor: Int32, path: String) throws(SystemCallError)
    /// Closes a descriptor. Errors are ignored, because `synchronize` has reported them before.
    func close(_ descriptor: Int32)
    /// Returns nil if nothing has this name.
    func status(_ path: String) throws(SystemCallError) -> FileStatus?
    /// Returns the path without symbolic links.
    func resolve(_ path: String) throws(SystemCallError) -> String
    func link(_ path: String, to newPath: String) throws(SystemCallError)
    func rename(_ path: String, to newPath: String) throws(SystemCallError)
    /// Makes a symbolic link; its name must be free.
    func makeSymbolicLink(to target: String, at path: String) throws(SystemCallError)
    /// Returns the target of a symbolic link; nil if there is no symbolic link of that name.
    func linkTarget(_ path: String) throws(SystemCallError) -> String?
    /// Removes a name. A missing name is not an error.
    func unlink(_ path: String) throws(SystemCallError)
    /// Removes a directory. A directory that is missing or not empty is not an error.
    func removeDirectory(_ path: String) throws(SystemCallError)
    /// Returns the names in a directory without `.` and `..`; an empty list if there is no such directory. Names that
    /// are not UTF-8 are skipped: the cache makes no such names.
    func list(_ path: String) throws(SystemCallError) -> [DirectoryEntry]
    func space(_ path: String) throws(SystemCallError) -> FileSystemSpace
}
