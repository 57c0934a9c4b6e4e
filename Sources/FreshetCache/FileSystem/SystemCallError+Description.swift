import Glibc

extension SystemCallError: CustomStringConvertible {
    /// One sentence, with the remedy if the error number suggests one.
    package var description: String {
        var buffer = [CChar](repeating: 0, count: 256)
        // strerror would share one buffer between threads. It fails only for an unknown number, and then still writes.
        _ = strerror_r(errno, &buffer, buffer.count)
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        return "\(call) \(path): \(text)\(remedy)"
    }

    private var remedy: String {
        switch errno {
        case EACCES: "; the service's user must be able to write there"
        case EROFS:
            "; make it writable again; after an error of the disk, the kernel makes a file system read-only: repair it"
        case EXDEV: "; the whole cache directory must be one file system"
        case EPERM where call == "link": "; the cache directory needs a file system with hard links"
        case EPERM where call == "fchown": "; cache.group must be a group of the service's user"
        case EMFILE, ENFILE: "; raise LimitNOFILE"
        case ELOOP: "; a symbolic link is in the place of a directory or file of the cache"
        case EISDIR: "; a directory is in the place of a file of the cache; move it away"
        default: ""
        }
    }

    /// The file system has no space, or no inodes.
    var isFull: Bool { errno == ENOSPC }

    /// A quota of the file system is used up.
    var isOverQuota: Bool { errno == EDQUOT }

    /// A directory is in the place of the file.
    var isDirectory: Bool { errno == EISDIR }

    /// This process may not read the file.
    var isUnreadable: Bool { call == "open" && errno == EACCES }

    /// The file or directory does not exist.
    var isMissing: Bool { errno == ENOENT }
}

extension SystemCallError {
    static var missing: Int32 { ENOENT }
    static var notEmpty: Int32 { ENOTEMPTY }
}
