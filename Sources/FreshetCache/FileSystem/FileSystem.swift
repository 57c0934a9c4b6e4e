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

/// What tells whether a file is still the one that was looked at before.
///
/// The time of the last status change is part of it: a program that restores the modification time after an edit
/// still moves that one.
package struct FileIdentity: Hashable, Sendable {
    package var inode: UInt64
    /// Bytes.
    package var size: Int64
    /// Nanoseconds since 1970.
    package var modified: Int64
    /// Nanoseconds since 1970.
    package var changed: Int64

    package init(inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
        self.inode = inode
        self.size = size
        self.modified = modified
        self.changed = changed
    }
}

/// What `stat` says, as far as the cache asks.
package struct FileStatus: Hashable, Sendable {
    package var identity: FileIdentity
    /// The permission bits alone.
    package var mode: UInt32
    /// The group that owns the file.
    package var group: UInt32
    /// How many names the inode has.
    package var links: UInt64
    package var isRegularFile: Bool

    package init(identity: FileIdentity, mode: UInt32, group: UInt32, links: UInt64, isRegularFile: Bool) {
        self.identity = identity
        self.mode = mode
        self.group = group
        self.links = links
        self.isRegularFile = isRegularFile
    }
}

/// A name in a directory.
package struct DirectoryEntry: Hashable, Sendable {
    package var name: String
    package var inode: UInt64

    package init(name: String, inode: UInt64) {
        self.name = name
        self.inode = inode
    }
}

/// The room of a file system, in bytes, as unprivileged processes may use it.
package struct FileSystemSpace: Hashable, Sendable {
    package var total: UInt64
    package var available: UInt64

    package init(total: UInt64, available: UInt64) {
        self.total = total
        self.available = available
    }
}

/// The system calls of the cache directory, one method each, so that a test can let each of them fail.
///
/// Paths are absolute. No method follows a symbolic link in the last component. All may block.
package protocol FileSystem: Sendable {
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
    func link(_ path: String, to newPath: String) throws(SystemCallError)
    func rename(_ path: String, to newPath: String) throws(SystemCallError)
    /// Removes a name; a name that is not there is no error.
    func unlink(_ path: String) throws(SystemCallError)
    /// The names in a directory but `.` and `..`; none if there is no such directory. Names that are not UTF-8 are
    /// left out: the cache makes none.
    func list(_ path: String) throws(SystemCallError) -> [DirectoryEntry]
    func space(_ path: String) throws(SystemCallError) -> FileSystemSpace
}
