import CSystemd  // timespec: a whole-module build takes it for this module's
import Glibc

/// The identity of a file or directory: stat(2).
struct FileIdentity: Hashable, Sendable {
    var device: UInt64
    var inode: UInt64
}

/// The part of a path's stat(2) that shows a change of content.
struct FileSnapshot: Hashable, Sendable {
    var identity: FileIdentity
    var isDirectory = false
    var size: Int64 = 0
    /// st_mtim, not st_ctim: a change of rights is not a change of content.
    var modifiedSeconds: Int64 = 0
    var modifiedNanoseconds: Int64 = 0
}

extension FileSnapshot {
    init(_ status: stat) {
        identity = FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        isDirectory = status.st_mode & S_IFMT == S_IFDIR
        size = Int64(status.st_size)
        modifiedSeconds = Int64(status.st_mtim.tv_sec)
        modifiedNanoseconds = Int64(status.st_mtim.tv_nsec)
    }
}
