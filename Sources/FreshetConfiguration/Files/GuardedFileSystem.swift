/// A file system that rejects paths which an untrusted user may have changed: configuration decides which programs run.
package struct GuardedFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    private let check: @Sendable (String) -> FileError?

    /// - Parameter check: returns the reason to reject a path; nil accepts the path. May block.
    package init(_ base: any ConfigurationFileSystem, check: @escaping @Sendable (String) -> FileError?) {
        self.base = base
        self.check = check
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        if let error = check(path) { throw error }
        return try base.names(inDirectory: path)
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        if let error = check(path) { throw error }
        return try base.content(ofFile: path, limit: limit)
    }
}
