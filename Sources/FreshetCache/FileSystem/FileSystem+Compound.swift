import FreshetModel
import Glibc

extension FileSystem {
    /// Flushes a directory, so that its names survive a power cut.
    func synchronizeDirectory(_ path: String) throws(SystemCallError) {
        let descriptor = try openDirectory(path)
        defer { close(descriptor) }
        try synchronize(descriptor, path: path)
    }

    /// Replaces `destination` with a hard link to `source`. The link is first made as `temporary`, which does not exist
    /// afterwards.
    ///
    /// `source` must not be the same inode as `destination`: rename between two names of one inode does nothing
    /// (rename(2)), and programs that watch the file would see both the new link and its removal as a change.
    func replace(
        _ destination: String, withLinkTo source: String, by temporary: String
    ) throws(SystemCallError) {
        try link(source, to: temporary)
        do {
            try rename(temporary, to: destination)
        } catch {
            try? unlink(temporary)
            throw error
        }
        // The name exists only if both names were one inode. To look is cheaper than to remove a name that is not there,
        // for which the kernel locks the directory.
        if try status(temporary) != nil { try unlink(temporary) }
    }

    /// The SHA-256 of a file's content; nil if there is no such regular file, or none that this process may read.
    ///
    /// - Parameter isEnough: called before each piece; if it returns true, the rest is not read, and the result is nil.
    func digest(of path: String, until isEnough: () -> Bool = { false }) throws(CacheError) -> ContentDigest? {
        var hasher = try SHA256Hasher()
        let isThere = try readFile(path, until: isEnough) { (bytes) throws(CacheError) in hasher.update(bytes) }
        return isThere ? try hasher.finalize() : nil
    }

    /// Passes the content of a file to `each`, piece by piece. Returns false if there is no such regular file, or none
    /// that this process may read: another program has changed its mode, and its content is of no use then.
    func readFile(
        _ path: String, until isEnough: () -> Bool = { false },
        _ each: (UnsafeRawBufferPointer) throws(CacheError) -> Void
    ) throws(CacheError) -> Bool {
        let descriptor: Int32
        do throws(SystemCallError) {
            guard let status = try status(path), status.isRegularFile else { return false }
            descriptor = try openFile(path)
        } catch {
            // Without the pipeline's lock, a commit may remove the name between the two calls.
            if error.errno == ENOENT || error.isUnreadable { return false }
            throw .fileSystem(error)
        }
        defer { close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: CacheLimits.copyBuffer, alignment: 16)
        defer { buffer.deallocate() }
        while !isEnough() {
            let count: Int
            do throws(SystemCallError) {
                count = try read(into: buffer, from: descriptor, path: path)
            } catch {
                throw .fileSystem(error)
            }
            if count == 0 { return true }
            try each(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        return false
    }
}
