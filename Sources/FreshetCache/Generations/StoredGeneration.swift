/// The open content of a generation. Its methods block; one call at a time.
package final class StoredGeneration: Sendable {
    private let descriptor: Int32
    private let path: String
    private let fileSystem: any FileSystem

    init(descriptor: Int32, path: String, fileSystem: any FileSystem) {
        self.descriptor = descriptor
        self.path = path
        self.fileSystem = fileSystem
    }

    deinit { fileSystem.close(descriptor) }

    /// The next bytes, at most `limit`; empty at the end.
    package func read(_ limit: Int) throws(CacheError) -> [UInt8] {
        // The initializer does not pass typed errors through.
        var result = Result<Void, SystemCallError>.success(())
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            result = Result { () throws(SystemCallError) in
                count = try fileSystem.read(
                    into: UnsafeMutableRawBufferPointer(buffer), from: descriptor, path: path)
            }
        }
        do throws(SystemCallError) {
            try result.get()
        } catch {
            throw .fileSystem(error)
        }
        return bytes
    }
}

/// A user who reads a file, with the IDs that the kernel uses.
package struct FileReader: Sendable {
    package var user: UInt32
    package var groups: Set<UInt32>

    package init(user: UInt32, groups: Set<UInt32>) {
        self.user = user
        self.groups = groups
    }

    /// Whether a file's mode gives the user a permission (path_resolution(7)): 4 to read a file, 1 to search a
    /// directory. Access-control lists are ignored.
    func has(_ permission: UInt32, on status: FileStatus) -> Bool {
        if user == 0 { return true }
        if user == status.owner { return status.mode & permission << 6 != 0 }
        if groups.contains(status.group) { return status.mode & permission << 3 != 0 }
        return status.mode & permission != 0
    }
}
