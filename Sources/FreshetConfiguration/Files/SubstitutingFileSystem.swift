/// A file system in which some files have a different content, so that an edit can be checked together with all other
/// files before it is installed.
package struct SubstitutingFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    /// The contents by the paths that the files will have.
    private let copies: [String: Result<FileContent, FileError>]

    package init(_ base: any ConfigurationFileSystem, copies: [String: Result<FileContent, FileError>]) {
        self.base = base
        self.copies = copies
    }

    /// Reads a file whose content replaces that of another file. Blocks.
    package static func copy(of path: String) -> Result<FileContent, FileError> {
        Result { () throws(FileError) in
            try HostFileSystem().content(ofFile: path, limit: SourceText.maximumSize)
        }
    }

    package func forOneLoad() -> any ConfigurationFileSystem {
        SubstitutingFileSystem(base.forOneLoad(), copies: copies)
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        let prefix = path == "/" ? path : path + "/"
        // The replaced files, and the directories that will be created for them.
        let added = copies.keys.filter { $0.hasPrefix(prefix) }
            .map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }
        let found = try base.names(inDirectory: path)
        guard !added.isEmpty else { return found }
        return Array(Set(found ?? []).union(added))
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        guard let copy = copies[path] else { return try base.content(ofFile: path, limit: limit) }
        return try copy.get().within(limit)
    }
}
