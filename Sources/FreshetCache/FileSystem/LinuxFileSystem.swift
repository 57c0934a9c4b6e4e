import FreshetModel
import Glibc

/// The real file system.
struct LinuxFileSystem: FileSystem {
    func makeDirectory(_ path: String, mode: UInt32) throws(SystemCallError) -> Bool {
        let made = mkdir(path, mode) == 0
        if !made, errno != EEXIST { throw SystemCallError(call: "mkdir", path: path, errno: errno) }
        // mkdir applies the umask, so the mode is set on the descriptor.
        let descriptor = try openDirectory(path)
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw SystemCallError(call: "fstat", path: path, errno: errno)
        }
        if status.st_mode & 0o7777 != mode { try setMode(mode, of: descriptor, path: path) }
        return made
    }

    func createFile(_ path: String) throws(SystemCallError) -> Int32 {
        try openInDirectory(path, O_WRONLY | O_CREAT | O_EXCL)
    }

    func openFile(_ path: String) throws(SystemCallError) -> Int32 {
        try openInDirectory(path, O_RDONLY | O_NONBLOCK)
    }

    func openDirectory(_ path: String) throws(SystemCallError) -> Int32 {
        try open(path, O_RDONLY | O_DIRECTORY, in: AT_FDCWD, path)
    }

    /// Opens a file through a descriptor of its directory. O_NOFOLLOW applies to the last component only; this way a
    /// symbolic link in the place of the directory is not followed either.
    private func openInDirectory(_ path: String, _ flags: Int32) throws(SystemCallError) -> Int32 {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            return try open(path, flags, in: AT_FDCWD, path)
        }
        let directory = try open(String(path[..<slash]), O_RDONLY | O_DIRECTORY, in: AT_FDCWD, path)
        defer { close(directory) }
        return try open(String(path[path.index(after: slash)...]), flags, in: directory, path)
    }

    /// - Parameter path: the whole path, for an error.
    private func open(
        _ name: String, _ flags: Int32, in directory: Int32, _ path: String
    ) throws(SystemCallError) -> Int32 {
        while true {
            let descriptor = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
            if descriptor >= 0 { return descriptor }
            if errno == EINTR { continue }
            var reason = errno
            // For a link in the place of a directory, the kernel reports only ENOTDIR.
            var status = stat()
            if reason == ENOTDIR, fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                status.st_mode & S_IFMT == S_IFLNK
            {
                reason = ELOOP
            }
            throw SystemCallError(call: "open", path: path, errno: reason)
        }
    }

    func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String
    ) throws(SystemCallError) {
        var rest = bytes
        while !rest.isEmpty {
            let written = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if written >= 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
            } else if errno != EINTR {
                throw SystemCallError(call: "write", path: path, errno: errno)
            }
        }
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, path: String
    ) throws(SystemCallError) -> Int {
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno != EINTR { throw SystemCallError(call: "read", path: path, errno: errno) }
        }
    }

    func setMode(_ mode: UInt32, of descriptor: Int32, path: String) throws(SystemCallError) {
        guard fchmod(descriptor, mode) == 0 else {
            throw SystemCallError(call: "fchmod", path: path, errno: errno)
        }
    }

    func setGroup(_ group: UInt32, of descriptor: Int32, path: String) throws(SystemCallError) {
        guard fchown(descriptor, uid_t.max, group) == 0 else {
            throw SystemCallError(call: "fchown", path: path, errno: errno)
        }
    }

    func synchronize(_ descriptor: Int32, path: String) throws(SystemCallError) {
        while fsync(descriptor) != 0 {
            if errno != EINTR { throw SystemCallError(call: "fsync", path: path, errno: errno) }
        }
    }

    func close(_ descriptor: Int32) {
        // Not retried after EINTR: Linux has closed the descriptor by then, and another thread may own its number.
        _ = Glibc.close(descriptor)
    }

    func status(_ path: String) throws(SystemCallError) -> FileStatus? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw SystemCallError(call: "lstat", path: path, errno: errno)
        }
        return FileStatus(
            identity: FileIdentity(
                inode: UInt64(status.st_ino), size: Int64(status.st_size),
                modified: Self.nanoseconds(status.st_mtim), changed: Self.nanoseconds(status.st_ctim)),
            mode: status.st_mode & 0o7777,
            group: status.st_gid,
            owner: status.st_uid,
            links: UInt64(status.st_nlink),
            isRegularFile: status.st_mode & S_IFMT == S_IFREG,
            isDirectory: status.st_mode & S_IFMT == S_IFDIR)
    }

    func resolve(_ path: String) throws(SystemCallError) -> String {
        guard let resolved = realpath(path, nil) else {
            throw SystemCallError(call: "realpath", path: path, errno: errno)
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    func link(_ path: String, to newPath: String) throws(SystemCallError) {
        guard Glibc.link(path, newPath) == 0 else {
            throw SystemCallError(call: "link", path: newPath, errno: errno)
        }
    }

    func rename(_ path: String, to newPath: String) throws(SystemCallError) {
        guard Glibc.rename(path, newPath) == 0 else {
            throw SystemCallError(call: "rename", path: newPath, errno: errno)
        }
    }

    func makeSymbolicLink(to target: String, at path: String) throws(SystemCallError) {
        guard symlink(target, path) == 0 else { throw SystemCallError(call: "symlink", path: path, errno: errno) }
    }

    func linkTarget(_ path: String) throws(SystemCallError) -> String? {
        // PATH_MAX including the NUL: the kernel makes no longer links.
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink(path, &bytes, bytes.count)
        guard count >= 0 else {
            // EINVAL: it is something else than a link.
            if errno == ENOENT || errno == ENOTDIR || errno == EINVAL { return nil }
            throw SystemCallError(call: "readlink", path: path, errno: errno)
        }
        return String(decoding: bytes[..<count].map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    func unlink(_ path: String) throws(SystemCallError) {
        guard Glibc.unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR else {
            throw SystemCallError(call: "unlink", path: path, errno: errno)
        }
    }

    func removeDirectory(_ path: String) throws(SystemCallError) {
        guard rmdir(path) == 0 || [ENOENT, ENOTEMPTY, EEXIST].contains(errno) else {
            throw SystemCallError(call: "rmdir", path: path, errno: errno)
        }
    }

    func list(_ path: String) throws(SystemCallError) -> [DirectoryEntry] {
        let descriptor: Int32
        do throws(SystemCallError) {
            descriptor = try openDirectory(path)
        } catch {
            if [ENOENT, ENOTDIR, ELOOP].contains(error.errno) { return [] }
            throw error
        }
        guard let directory = fdopendir(descriptor) else {
            let reason = errno
            close(descriptor)
            throw SystemCallError(call: "fdopendir", path: path, errno: reason)
        }
        // closedir also closes the descriptor.
        defer { closedir(directory) }
        var entries: [DirectoryEntry] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                if errno != 0 { throw SystemCallError(call: "readdir", path: path, errno: errno) }
                return entries
            }
            // The record ends with its name, so the field cannot be read as the array that C declares.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { continue }
            let start = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
            guard let name = String(validatingCString: start), name != ".", name != ".." else { continue }
            entries.append(DirectoryEntry(name: name, inode: UInt64(entry.pointee.d_ino)))
        }
    }

    func space(_ path: String) throws(SystemCallError) -> FileSystemSpace {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else {
            throw SystemCallError(call: "statvfs", path: path, errno: errno)
        }
        let unit = UInt64(status.f_frsize)
        func bytes(_ blocks: UInt64) -> UInt64 {
            let (bytes, overflow) = blocks.multipliedReportingOverflow(by: unit)
            return overflow ? .max : bytes
        }
        return FileSystemSpace(
            total: bytes(UInt64(status.f_blocks)), available: bytes(UInt64(status.f_bavail)),
            hasInodes: status.f_files == 0 || status.f_favail > 0)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        // A damaged inode or touch(1) can produce a time that does not fit.
        WallTime(seconds: Int64(time.tv_sec)).nanoseconds.addingClamped(Int64(time.tv_nsec))
    }
}
