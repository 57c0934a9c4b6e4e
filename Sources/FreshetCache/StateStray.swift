import Glibc

/// A foreign object in the place of Freshet's own file in the state directory. It is moved aside unchanged, and neither
/// followed nor opened.
package struct StateStray: Hashable, Sendable, CustomStringConvertible {
    package var path: String
    /// The kind of object, such as "a directory".
    package var kind: String
    /// The new path.
    package var movedTo: String

    package var description: String { "\(path) is \(kind), which is not Freshet's, and was moved to \(movedTo)" }

    /// The type of Freshet's own object.
    enum Expectation: Sendable {
        case file, directory

        fileprivate var type: mode_t { self == .file ? S_IFREG : S_IFDIR }
    }

    /// Moves an object aside if its type differs from that of Freshet's own object of this name.
    ///
    /// - Returns: nil if there is no object, or if its type is right.
    static func moveAside(_ path: String, unless expectation: Expectation) throws(CacheError) -> StateStray? {
        guard let found = try status(path, unless: expectation) else { return nil }
        // In the same directory: a directory of another owner could not be moved to another directory.
        let target = "\(path).stray-\(found.inode)"
        guard rename(path, target) == 0 else {
            throw .fileSystem(SystemCallError(call: "rename", path: path, errno: errno))
        }
        return StateStray(path: path, kind: found.kind, movedTo: target)
    }

    /// The kind of an object in the place of Freshet's own object; nil if there is none.
    static func kind(of path: String, unless expectation: Expectation) throws(CacheError) -> String? {
        try status(path, unless: expectation)?.kind
    }

    private static func status(
        _ path: String, unless expectation: Expectation
    ) throws(CacheError) -> (kind: String, inode: UInt64)? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw .fileSystem(SystemCallError(call: "lstat", path: path, errno: errno))
        }
        let type = status.st_mode & S_IFMT
        return type == expectation.type ? nil : (name(of: type), UInt64(status.st_ino))
    }

    private static func name(of type: mode_t) -> String {
        switch type {
        case S_IFREG: "a file"
        case S_IFDIR: "a directory"
        case S_IFLNK: "a symbolic link"
        case S_IFIFO: "a FIFO"
        case S_IFSOCK: "a socket"
        default: "a device"
        }
    }
}

extension CacheLayout {
    private static let indexSuffixes = ["", "-wal", "-shm", "-journal"]

    /// The files of the index and of SQLite's log and journal.
    var indexFiles: [String] { Self.indexSuffixes.map { index + $0 } }

    /// The damaged indexes that are kept, with their logs and journals.
    var damagedIndexFiles: [String] {
        (0..<CacheLimits.damagedIndexes).flatMap { number in Self.indexSuffixes.map { damagedIndex(number) + $0 } }
    }
}
