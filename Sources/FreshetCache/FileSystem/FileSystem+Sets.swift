extension FileSystem {
    /// Puts a symbolic link over `path`, by way of `temporary`. What stands there and is no directory goes.
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

    /// A new file with this content, mode and group, all of it on disk but the name.
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

    /// Removes a directory of files; the path must be one's. A directory in it stays, and so does it itself then.
    func removeFlatDirectory(_ path: String) throws(SystemCallError) {
        for entry in try list(path) {
            let child = path + "/" + entry.name
            if try status(child)?.isDirectory == false { try unlink(child) }
        }
        try removeDirectory(path)
    }
}
