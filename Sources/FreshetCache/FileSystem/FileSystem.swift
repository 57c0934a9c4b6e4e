/// What tells whether a file is still the one that was looked at before.
///
/// The time of the last status change is part of it: a program that restores the modification time after an edit
/// still moves that one.
struct FileIdentity: Hashable, Sendable {
    var inode: UInt64
    /// Bytes.
    var size: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
    /// Nanoseconds since 1970.
    var changed: Int64

    /// That of no file.
    static let none = FileIdentity(inode: 0, size: 0, modified: 0, changed: 0)
}

/// What `stat` says, as far as the cache asks.
struct FileStatus: Hashable, Sendable {
    var identity: FileIdentity
    /// The permission bits alone.
    var mode: UInt32
    /// The group that owns the file.
    var group: UInt32
    /// The user who owns the file.
    var owner: UInt32 = 0
    /// How many names the inode has.
    var links: UInt64
    var isRegularFile: Bool
    var isDirectory = false
}

/// A name in a directory.
struct DirectoryEntry: Hashable, Sendable {
    var name: String
    var inode: UInt64
}

/// The room of a file system, in bytes, as unprivileged processes may use it.
struct FileSystemSpace: Hashable, Sendable {
    var total: UInt64
    var available: UInt64
}

/// The system calls of the cache directory, one method each, so that a test can let each of them fail.
///
/// Paths are absolute. No method follows a symbolic link in the last component, and files are neither made nor opened in what
/// a link in the place of their directory leads to. All may block.
protocol FileSystem: Sendable {
    /// `mkdir` and the mode; an existing directory gets the mode. True if it was made.
    func makeDirectory(_ path: String, mode: UInt32) throws(SystemCallError) -> Bool
    /// A new file for writing, readable by its owner alone; the name must be free.
    func createFile(_ path: String) throws(SystemCallError) -> Int32
    func openFile(_ path: String) throws(SystemCallError) -> Int32
    func openDirectory(_ path: String) throws(SystemCallError) -> Int32
    /// Writes all of `bytes`.
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(SystemCallError)
    /// Reads what is there, at most `buffer`; 0 is the end.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, path: String
    ) throws(SystemCallError) -> Int
    func setMode(_ mode: UInt32, of descriptor: Int32, path: String) throws(SystemCallError)
    func setGroup(_ group: UInt32, of descriptor: Int32, path: String) throws(SystemCallError)
    func synchronize(_ descriptor: Int32, path: String) throws(SystemCallError)
    /// Closes. Its errors tell nothing that `synchronize` has not told before.
    func close(_ descriptor: Int32)
    /// Nil if there is nothing of that name.
    func status(_ path: String) throws(SystemCallError) -> FileStatus?
    /// The same place by a path without symbolic links.
    func resolve(_ path: String) throws(SystemCallError) -> String
    func link(_ path: String, to newPath: String) throws(SystemCallError)
    func rename(_ path: String, to newPath: String) throws(SystemCallError)
    /// A symbolic link; its name must be free.
    func makeSymbolicLink(to target: String, at path: String) throws(SystemCallError)
    /// Where a symbolic link leads; nil if there is none of that name.
    func linkTarget(_ path: String) throws(SystemCallError) -> String?
    /// Removes a name; a name that is not there is no error.
    func unlink(_ path: String) throws(SystemCallError)
    /// Removes a directory; one that is not empty, or not there, is no error.
    func removeDirectory(_ path: String) throws(SystemCallError)
    /// The names in a directory but `.` and `..`; none if there is no such directory. Names that are not UTF-8 are
    /// left out: the cache makes none.
    func list(_ path: String) throws(SystemCallError) -> [DirectoryEntry]
    func space(_ path: String) throws(SystemCallError) -> FileSystemSpace
}
