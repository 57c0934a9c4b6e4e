import FreshetEventLoop
import Glibc

/// Resolves the path of an opened file, name by name and link by link, to find out whether its links may be followed.
///
/// A user who may write to a directory in the path can make a link there to any file of the machine, and the daemon
/// would read that file with its own rights. So a link is allowed only if it belongs to root, to the daemon's user, or
/// to the owner of the file to which the path leads, as with the kernel's `fs.protected_symlinks` (proc(5)).
///
/// Each name is opened relative to the directory before it, without following links, so that a checked name cannot be
/// replaced. The file at the end must be the file that was opened. The path is opened first, by the kernel alone, which
/// also mounts file systems on demand. All calls may block.
struct FileWalk {
    /// A link that belongs neither to root nor to the daemon's user.
    struct Link: Hashable {
        var path: String
        var owner: uid_t
    }

    /// The number of links that the kernel follows (path_resolution(7)).
    static let maxLinks = 40
    /// O_PATH of fcntl.h (asm-generic), which the Glibc module lacks. It opens a file for its status only, not for
    /// reading.
    static let pathOnly: Int32 = 0o1000_0000
    /// The most names in a path of PATH_MAX bytes.
    static let maxDepth = Int(PATH_MAX) / 2

    /// The status of the file at the end of the path.
    private(set) var status = stat()
    /// The directory of that file.
    private(set) var directory: OwnedDescriptor
    /// Links that belong neither to root nor to the daemon's user, in the order in which they are followed.
    private(set) var links: [Link] = []

    init(_ path: String) throws(SystemCallError) {
        directory = try Self.root()
        var names = Self.names(of: path)
        var followed = 0
        while let name = names.popLast() {
            var item = try open(name, O_NOFOLLOW)
            status = try Self.status(of: item)
            if status.st_mode & S_IFMT == S_IFLNK {
                followed += 1
                guard followed <= Self.maxLinks else { throw SystemCallError("open", errno: ELOOP, subject: path) }
                if status.st_uid != 0, status.st_uid != geteuid() {
                    let place = Self.location(of: directory) ?? "…"
                    links.append(Link(path: place == "/" ? "/\(name)" : "\(place)/\(name)", owner: status.st_uid))
                }
                guard Self.isInProcfs(item) else {
                    let target = try Self.target(of: item, path)
                    if target.hasPrefix("/") { directory = try Self.root() }
                    names += Self.names(of: target)
                    continue
                }
                // The target of a link in procfs may differ from its text. Only the kernel makes such links.
                item = try open(name, 0)
                status = try Self.status(of: item)
            }
            if status.st_mode & S_IFMT == S_IFDIR {
                directory = item
            } else if !names.isEmpty {
                throw SystemCallError("open", errno: ENOTDIR, subject: path)
            }
        }
    }

    /// The link that must not be followed to the file at the end; nil if all links may be followed.
    var forbiddenLink: Link? { links.first { $0.owner != status.st_uid } }

    /// Whether two statuses are of the same file.
    static func isSame(_ one: stat, _ other: stat) -> Bool {
        one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }

    static func status(of file: OwnedDescriptor) throws(SystemCallError) -> stat {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { throw SystemCallError("fstat", errno: errno) }
        return status
    }

    /// The path of an open file, for messages; nil if it cannot be determined, such as without procfs.
    static func location(of file: OwnedDescriptor) -> String? {
        read { readlink("/proc/self/fd/\(file.rawValue)", $0, $1) }
    }

    private func open(_ name: String, _ flags: Int32) throws(SystemCallError) -> OwnedDescriptor {
        try OwnedDescriptor(
            openat(directory.rawValue, name, Self.pathOnly | O_CLOEXEC | flags), of: "open", subject: name)
    }

    private static func root() throws(SystemCallError) -> OwnedDescriptor {
        try OwnedDescriptor(Glibc.open("/", Self.pathOnly | O_DIRECTORY | O_CLOEXEC), of: "open", subject: "/")
    }

    /// The names of a path, in reverse order.
    private static func names(of path: String) -> [String] {
        path.split(separator: "/").map(String.init).filter { $0 != "." }.reversed()
    }

    private static func target(of link: OwnedDescriptor, _ path: String) throws(SystemCallError) -> String {
        guard let target = read({ readlinkat(link.rawValue, "", $0, $1) }) else {
            throw SystemCallError("readlink", errno: errno, subject: path)
        }
        return target
    }

    private static func read(_ call: (UnsafeMutablePointer<CChar>, Int) -> Int) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = call(start, buffer.count)
            guard count > 0 else { return nil }
            return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
    }

    /// Whether a link is in procfs.
    private static func isInProcfs(_ link: OwnedDescriptor) -> Bool {
        var processes = stat()
        guard stat("/proc", &processes) == 0, let link = try? status(of: link) else { return false }
        return link.st_dev == processes.st_dev
    }
}
