import Glibc

/// The files of the host. Reads block: use it at the start of the daemon, in tools, and on a worker thread.
package struct HostFileSystem: ConfigurationFileSystem {
    package init() {}

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        guard let directory = opendir(path) else {
            let error = errno
            if error == ENOENT { return nil }
            throw Self.error(error)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                if errno != 0 { throw Self.error(errno) }
                return names
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        // O_NONBLOCK: opening a pipe of this name must not block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else {
            let error = errno
            guard error == ENOENT else { throw Self.error(error) }
            var status = stat()
            if lstat(path, &status) == 0 { throw .danglingLink }
            return .absent
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.error(errno) }
        // The null device is 1:3 on every Linux (Documentation/admin-guide/devices.txt).
        if status.st_mode & S_IFMT == S_IFCHR, status.st_rdev == 0x103 { return .masked }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
        guard status.st_size <= limit else { throw .tooLarge(limit: limit) }
        return .bytes(try Self.bytes(of: descriptor, expected: Int(status.st_size), limit: limit))
    }

    /// Reads to the end of the file. It may be larger than expected if another process writes to it.
    private static func bytes(of descriptor: Int32, expected: Int, limit: Int) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        // One byte more than expected, so that the end is found without another read.
        var capacity = expected + 1
        while true {
            var error: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
                while count < buffer.count {
                    let result = read(descriptor, buffer.baseAddress.map { $0 + count }, buffer.count - count)
                    if result > 0 {
                        count += result
                    } else if result == 0 {
                        return
                    } else if errno != EINTR {
                        error = errno
                        return
                    }
                }
            }
            guard error == 0 else { throw Self.error(error) }
            let isEnd = chunk.count < capacity
            bytes = bytes.isEmpty ? chunk : bytes + chunk
            guard bytes.count <= limit else { throw .tooLarge(limit: limit) }
            if isEnd { return bytes }
            capacity = max(4096, bytes.count)
        }
    }

    private static func error(_ error: Int32) -> FileError {
        let reason = reason(error)
        switch error {
        case EACCES, EPERM: return .forbidden(to: userName(), reason: reason)
        case ENOTDIR: return FileError(message: "a directory is expected here: \(reason)")
        default: return FileError(message: "cannot be read: \(reason)")
        }
    }

    private static func reason(_ error: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        guard strerror_r(error, &buffer, buffer.count) == 0 else { return "error \(error)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    /// The name of the effective user, or the number if the user has no name.
    private static func userName() -> String {
        let user = geteuid()
        // Far more than a line of passwd(5) has; if it is not enough, the number is returned.
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let start = buffer.baseAddress,
                getpwuid_r(user, &entry, start, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
            else { return String(user) }
            return String(cString: name)
        }
    }
}
