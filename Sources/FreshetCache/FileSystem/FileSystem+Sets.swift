extension FileSystem {
    /// Replaces `path` with a symbolic link, which is first made as `temporary`. Any old object at `path` goes, except
    /// a directory.
    func replace(
        _ path: String, withSymbolicLinkTo target: String, by temporary: String
    ) throws(SystemCallError) {
        try makeSymbolicLink(to: target, at: temporary)
        do {
            try rename(temporary, to: path)
        } catch {
            try? unlink(temporary)
            throw error
        }
    }

    /// Creates a file with this content, mode and group. The content is flushed to disk, the name is not.
    func write(
        _ content: [UInt8], to path: String, mode: UInt32, group: UInt32
    ) throws(SystemCallError) {
        let descriptor = try createFile(path)
        defer { close(descriptor) }
        // withUnsafeBytes does not pass typed errors through.
        let result = content.withUnsafeBytes { bytes in
            Result { () throws(SystemCallError) in try write(bytes, to: descriptor, path: path) }
        }
        try result.get()
        if let status = try status(path), status.group != group {
            try setGroup(group, of: descriptor, path: path)
        }
        try setMode(mode, of: descriptor, path: path)
        try synchronize(descriptor, path: path)
    }

    /// Removes the files of a directory and the directory; `path` must be a directory. If it contains directories,
    /// these stay, and so does the directory itself.
    func removeFlatDirectory(_ path: String) throws(SystemCallError) {
        for entry in try list(path) {
            let child = path + "/" + entry.name
            if try status(child)?.isDirectory == false { try unlink(child) }
        }
        try removeDirectory(path)
    }
}
