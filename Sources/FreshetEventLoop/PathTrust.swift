import Glibc
import Synchronization

/// Checks whether only root can change the file at a path: a hook, a check, or configuration that root reads. Otherwise an
/// attacker who has taken over the service once could permanently make it run any program.
///
/// The check covers the file and all directories on its path, including links, in their current state.
package struct PathTrust: Hashable, Sendable {
    /// The use of the path.
    package enum Use: Sendable {
        /// The path has to lead to a file.
        case program
        /// The path may lead to a directory, to the null device, which masks a file, or to nothing.
        case configuration
    }

    /// The maximum number of links on a path: the limit of the kernel (path_resolution(7)).
    static let mostLinks = 40

    package enum Kind: Hashable, Sendable {
        case directory, file, other
        case link(to: String)
    }

    package struct Entry: Hashable, Sendable {
        var kind: Kind
        var owner: UInt32
        /// With the sticky bit, chmod(2).
        var mode: UInt32
    }

    package struct ValidationError: Error, Hashable {
        /// A sentence without the program's path.
        package var message: String
        package var remedy: String?
        package var isMissing = false
        /// This process may not access the path, so it cannot read the file.
        var isForbidden = false
    }

    /// The user of the service; nil: unknown.
    var user: UInt32?
    /// Whether the service is a user's own: that user may change their own files.
    var isPersonal: Bool

    package init(user: UInt32?, isPersonal: Bool) {
        self.user = user
        self.isPersonal = isPersonal
    }

    /// - Parameter entry: Returns the entry at a path without following a link; throws `errno`. It blocks.
    package func check(
        _ path: String, as use: Use = .program, _ entry: (String) throws(Errno) -> Entry = Self.look
    ) throws(ValidationError) {
        do throws(ValidationError) {
            try walk(path, use, entry)
        } catch {
            // The file cannot be read: its reader reports that, with the reason.
            guard use == .configuration, error.isMissing || error.isForbidden else { throw error }
        }
    }

    private func walk(_ path: String, _ use: Use, _ entry: (String) throws(Errno) -> Entry) throws(ValidationError) {
        var ahead = Self.components(path)[...]
        var directory = ""
        var links = 0
        try check(try Self.look(at: "/", entry), at: "/")
        while let name = ahead.popFirst() {
            if name == ".." {
                directory = Self.parent(of: directory)
                continue
            }
            let place = "\(directory)/\(name)"
            let found = try Self.look(at: place, entry)
            switch found.kind {
            case .link(let target):
                links += 1
                guard links <= Self.mostLinks else {
                    throw ValidationError(message: "\(place) leads in a circle of links")
                }
                try checkOwner(found, at: place)
                if target.utf8.first == UInt8(ascii: "/") { directory = "" }
                ahead = (Self.components(target) + ahead)[...]
            case .directory:
                guard !ahead.isEmpty || use == .configuration else {
                    throw ValidationError(message: "\(place) is a directory", remedy: "name a program")
                }
                // In a directory with the sticky bit only its owner removes an entry; the next directory is checked, too.
                try check(found, at: place, mayBeShared: ahead.count > (use == .configuration ? 0 : 1))
                directory = place
            case .file:
                guard ahead.isEmpty else { throw ValidationError(message: "\(place) is not a directory") }
                return try check(found, at: place)
            case .other where use == .configuration && ahead.isEmpty: return try checkOwner(found, at: place)
            case .other:
                throw ValidationError(message: "\(place) is neither a file nor a directory", remedy: "name a program")
            }
        }
        guard use == .configuration else {
            throw ValidationError(message: "it is a directory", remedy: "name a program")
        }
    }

    private func check(_ entry: Entry, at path: String, mayBeShared: Bool = false) throws(ValidationError) {
        try checkOwner(entry, at: path)
        let isSticky = entry.mode & 0o1000 != 0
        guard entry.mode & 0o022 == 0 || mayBeShared && isSticky else {
            throw ValidationError(
                message: "others than its owner may write to \(path)", remedy: "chmod go-w \(path)")
        }
    }

    /// Only root may own it, or, in a user's own service, that user.
    private func checkOwner(_ entry: Entry, at path: String) throws(ValidationError) {
        guard entry.owner != 0, !(isPersonal && entry.owner == user ?? entry.owner) else { return }
        let reason =
            if entry.owner == user {
                "the service's own user, who could change it"
            } else {
                "the user \(entry.owner), who could act as \(user == 0 ? "root" : "the service's user")"
            }
        throw ValidationError(message: "\(path) belongs to \(reason)", remedy: "chown root \(path)")
    }

    private static func look(
        at path: String, _ entry: (String) throws(Errno) -> Entry
    ) throws(ValidationError) -> Entry {
        do throws(Errno) {
            return try entry(path)
        } catch {
            throw error.code == ENOENT
                ? ValidationError(message: "\(path) is not there", isMissing: true)
                : ValidationError(
                    message: "\(path) cannot be looked at: \(String(cString: strerror(error.code)))",
                    isForbidden: error.code == EACCES)
        }
    }

    /// Looks at each directory and link only once, for the paths of many files in few directories. Use it for a moment:
    /// a directory may change.
    package final class Lookups: Sendable {
        private let known = Mutex<[String: Entry]>([:])
        /// The directory of the last file that was trusted, if no link leads to the file.
        private let trusted = Mutex<(directory: String, trust: PathTrust)?>(nil)

        package init() {}

        /// Checks a file of the configuration like ``PathTrust/check(_:as:_:)``. Of the next file in the same directory,
        /// only the file itself is looked at.
        package func check(_ path: String, by trust: PathTrust) throws(ValidationError) {
            try check(path, by: trust, PathTrust.look)
        }

        /// - Parameter entry: returns the entry at a path without following a link.
        func check(
            _ path: String, by trust: PathTrust, _ entry: (String) throws(Errno) -> Entry
        ) throws(ValidationError) {
            let parent = PathTrust.plainParent(of: path)
            let known = trusted.withLock { $0 }
            if let parent, let known, known.trust == trust, PathTrust.areEqual(known.directory, parent),
                let found = try? entry(path), found.kind == .file
            {
                return try trust.check(found, at: path)
            }
            // A walk that ends at a missing directory finds no error either.
            var (isFile, hasLinks) = (false, false)
            try trust.check(path, as: .configuration) { (place) throws(Errno) in
                let found = try self.look(place, entry)
                if case .link = found.kind { hasLinks = true }
                if found.kind == .file, place == path { isFile = true }
                return found
            }
            guard isFile, !hasLinks, let parent else { return }
            trusted.withLock { $0 = (String(Substring(parent)), trust) }
        }

        package func look(_ path: String) throws(Errno) -> Entry { try look(path, PathTrust.look) }

        private func look(_ path: String, _ entry: (String) throws(Errno) -> Entry) throws(Errno) -> Entry {
            if let entry = known.withLock({ $0[path] }) { return entry }
            let found = try entry(path)
            switch found.kind {
            case .directory, .link: known.withLock { $0[path] = found }
            case .file, .other: break
            }
            return found
        }
    }

    /// The names on a path. The kernel separates them by bytes: a slash with a combining mark after it is not one
    /// character of a name.
    private static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual([UInt8(ascii: ".")]) }
            .map { String(Substring($0)) }
    }

    private static func parent(of directory: String) -> String {
        directory.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(Substring(directory.utf8[..<$0])) } ?? ""
    }

    /// The directory of a path that begins with a slash and has neither empty names nor `.` or `..`; nil: it is another
    /// path, or has no directory but the root.
    private static func plainParent(of path: String) -> Substring.UTF8View? {
        let utf8 = path.utf8
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        guard utf8.first == slash, let last = utf8.lastIndex(of: slash), last > utf8.startIndex else { return nil }
        // Any name that begins with a dot takes the longer way.
        var before: UInt8 = 0
        for byte in utf8 {
            if before == slash, byte == slash || byte == dot { return nil }
            before = byte
        }
        return before == slash ? nil : utf8[..<last]
    }

    /// Whether a path has these bytes. Characters that Unicode calls equal are other names.
    private static func areEqual(_ path: String, _ other: Substring.UTF8View) -> Bool {
        // Element by element, the views take ten times as long, and each file of the configuration is compared.
        let result = path.utf8.withContiguousStorageIfAvailable { bytes in
            other.withContiguousStorageIfAvailable { bytes.count == $0.count && bytes.elementsEqual($0) }
        }
        return (result ?? nil) ?? path.utf8.elementsEqual(other)
    }

    /// The value of errno(3).
    package struct Errno: Error { var code: Int32 }

    package static func look(_ path: String) throws(Errno) -> Entry {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw Errno(code: errno) }
        var kind = Kind.other
        switch status.st_mode & S_IFMT {
        case S_IFDIR: kind = .directory
        case S_IFREG: kind = .file
        case S_IFLNK:
            var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &target, target.count)
            guard count >= 0 else { throw Errno(code: errno) }
            kind = .link(to: String(decoding: target[..<count], as: UTF8.self))
        default: break
        }
        return Entry(kind: kind, owner: status.st_uid, mode: status.st_mode & 0o7777)
    }
}
