/// A file system that rejects paths which somebody may have changed who must not: configuration decides what is executed.
package struct GuardedFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    private let judge: @Sendable (String) -> FileError?

    /// - Parameter judge: the reason to reject a path; nil accepts it. May block.
    package init(_ base: any ConfigurationFileSystem, judge: @escaping @Sendable (String) -> FileError?) {
        self.base = base
        self.judge = judge
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        if let fault = judge(path) { throw fault }
        return try base.names(inDirectory: path)
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        if let fault = judge(path) { throw fault }
        return try base.content(ofFile: path, limit: limit)
    }
}
