/// A file system in which some files have another content: an edit can be checked together with all other files before it is
/// installed.
package struct SubstitutingFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    /// The contents by the paths that the files will have.
    private let copies: [String: Result<FileContent, FileError>]

    package init(_ base: any ConfigurationFileSystem, copies: [String: Result<FileContent, FileError>]) {
        self.base = base
        self.copies = copies
    }

    /// Reads a file that stands for another one. Blocks.
    package static func copy(of path: String) -> Result<FileContent, FileError> {
        Result { () throws(FileError) in
            try HostFileSystem().content(ofFile: path, limit: SourceText.maximumSize)
        }
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        let prefix = path == "/" ? path : path + "/"
        // What stands for a file, and for directories that will be made for it.
        let added = copies.keys.filter { $0.hasPrefix(prefix) }
            .map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }
        let found = try base.names(inDirectory: path)
        guard !added.isEmpty else { return found }
        return Array(Set(found ?? []).union(added))
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        guard let copy = copies[path] else { return try base.content(ofFile: path, limit: limit) }
        return try copy.get()
    }
}
