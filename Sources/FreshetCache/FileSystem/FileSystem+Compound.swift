import Glibc

extension FileSystem {
    /// Makes a directory's names durable.
    func synchronizeDirectory(_ path: String) throws(SystemCallError) {
        let descriptor = try openDirectory(path)
        defer { close(descriptor) }
        try synchronize(descriptor, path: path)
    }

    /// Puts a further name over `destination`, by way of `temporary`, which is gone afterwards.
    ///
    /// `source` must not be what `destination` names already: rename between two names of one inode does nothing
    /// (rename(2)), and both the new link and its removal would look like a change to whoever watches the file.
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
        // Gone already, unless the two were one inode after all.
        try unlink(temporary)
    }

    /// The SHA-256 of a file's content; nil if there is no such regular file.
    func digest(of path: String) throws(CacheError) -> ContentDigest? {
        var hasher = try SHA256Hasher()
        let isThere = try readFile(path) { (bytes) throws(CacheError) in hasher.update(bytes) }
        return isThere ? try hasher.finalize() : nil
    }

    /// Hands a file's content over, piece by piece; false if there is no such regular file.
    func readFile(
        _ path: String, _ each: (UnsafeRawBufferPointer) throws(CacheError) -> Void
    ) throws(CacheError) -> Bool {
        let descriptor: Int32
        do throws(SystemCallError) {
            guard let status = try status(path), status.isRegularFile else { return false }
            descriptor = try openFile(path)
        } catch {
            // Who reads without the pipeline's lock may meet a commit that takes the name away in between.
            if error.errno == ENOENT { return false }
            throw .fileSystem(error)
        }
        defer { close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: CacheLimits.copyBuffer, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count: Int
            do throws(SystemCallError) {
                count = try read(into: buffer, from: descriptor, path: path)
            } catch {
                throw .fileSystem(error)
            }
            if count == 0 { return true }
            try each(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}
