/// A file system that rejects paths which an untrusted user may have changed: configuration decides which programs run.
package struct GuardedFileSystem: ConfigurationFileSystem {
    private let base: any ConfigurationFileSystem
    private let check: Check
    private let checkOfOneLoad: @Sendable () -> Check

    /// Returns the reason to reject a path; nil accepts the path. May block, and any threads may call it.
    package typealias Check = @Sendable (String) -> FileError?

    /// - Parameter checkOfOneLoad: returns a new check that may remember what it has found out about directories.
    package init(
        _ base: any ConfigurationFileSystem, check: @escaping Check, checkOfOneLoad: @escaping @Sendable () -> Check
    ) {
        self.base = base
        self.check = check
        self.checkOfOneLoad = checkOfOneLoad
    }

    package func forOneLoad() -> any ConfigurationFileSystem {
        GuardedFileSystem(base.forOneLoad(), check: checkOfOneLoad(), checkOfOneLoad: checkOfOneLoad)
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
