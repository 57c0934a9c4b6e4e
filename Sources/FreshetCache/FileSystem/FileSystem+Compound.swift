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
        do throws(SystemCallError) {
            guard let status = try status(path), status.isRegularFile else { return nil }
        } catch {
            throw .fileSystem(error)
        }
        var hasher = try SHA256Hasher()
        do throws(SystemCallError) {
            let descriptor = try openFile(path)
            defer { close(descriptor) }
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: CacheLimits.copyBuffer, alignment: 16)
            defer { buffer.deallocate() }
            while true {
                let count = try read(into: buffer, from: descriptor, path: path)
                if count == 0 { break }
                hasher.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        } catch {
            throw .fileSystem(error)
        }
        return try hasher.finalize()
    }
}
