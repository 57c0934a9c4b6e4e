/// A file system in which some files are as they would be: each is read from a copy that lies elsewhere. So an edit can be
/// judged together with all the rest before it is installed.
package struct SubstitutingFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    /// Where the copies are, by the paths that they are to have.
    private let copies: [String: String]

    package init(_ base: any ConfigurationFileSystem, copies: [String: String]) {
        self.base = base
        self.copies = copies
    }

    package func names(inDirectory path: String) throws(FileFault) -> [String]? {
        let prefix = path == "/" ? path : path + "/"
        // What stands for a file, and for directories that will be made for it.
        let added = copies.keys.filter { $0.hasPrefix(prefix) }
            .map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }
        let found = try base.names(inDirectory: path)
        guard !added.isEmpty else { return found }
        return Array(Set(found ?? []).union(added))
    }

    package func content(ofFile path: String, limit: Int) throws(FileFault) -> FileContent {
        try base.content(ofFile: copies[path] ?? path, limit: limit)
    }
}
