import FreshetEventLoop
import Glibc

/// The daemon's own directories, whose files must not be sources: a link in a user's directory could lead to them, and
/// the copy would reveal data that only the daemon may read.
package struct PrivateDirectories: Hashable, Sendable {
    /// The directories for state, runtime files and credentials. None of their files is a source.
    private let whole: [String]
    /// The cache. Only its files that everybody may read, such as published copies, are sources.
    private let cache: String?

    /// - Parameters:
    ///   - whole: directories whose files are not read.
    ///   - cache: a directory of which only those files are read that everybody may read.
    package init(whole: [String] = [], cache: String? = nil) {
        self.whole = whole
        self.cache = cache
    }

    /// The private directory that contains the file and forbids to read it; nil if the file may be read. It may block,
    /// as file systems do.
    ///
    /// - Parameters:
    ///   - file: the status of the file.
    ///   - directory: the directory of the file.
    func forbidding(_ file: stat, in directory: OwnedDescriptor) throws(SystemCallError) -> String? {
        let whole = whole.compactMap { path in Self.status(path).map { (path, $0) } }
        let cache = cache.flatMap { path in Self.status(path).map { (path, $0) } }
        guard !whole.isEmpty || cache != nil else { return nil }
        var isPublic = file.st_mode & S_IROTH != 0
        var directory = directory
        var status = try FileWalk.status(of: directory)
        for _ in 0..<FileWalk.maxDepth {
            if let (path, _) = whole.first(where: { FileWalk.isSame($0.1, status) }) { return path }
            if let (path, known) = cache, FileWalk.isSame(known, status) { return isPublic ? nil : path }
            if status.st_mode & S_IXOTH == 0 { isPublic = false }
            let parent = openat(directory.rawValue, "..", FileWalk.pathOnly | O_DIRECTORY | O_CLOEXEC)
            // The daemon may search all parents of the private directories, so the file is in none of them.
            if parent < 0, errno == EACCES { return nil }
            directory = try OwnedDescriptor(parent, of: "open", subject: "..")
            let above = try FileWalk.status(of: directory)
            // The root is its own parent.
            if FileWalk.isSame(above, status) { return nil }
            status = above
        }
        throw SystemCallError("open", errno: ENAMETOOLONG, subject: "..")
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }
}
