import FreshetEventLoop
import FreshetRender
import Glibc

/// A file whose content is replaced atomically.
struct EditedFile {
    /// The path of the file; links are resolved if they are allowed.
    let path: String
    /// The content before the edit; nil if the file did not exist.
    let content: [UInt8]?

    /// - Parameters:
    ///   - path: the path of the file or of a link to it; the file need not exist.
    ///   - content: the content that was read already; nil to read the file now.
    ///   - mayBeLink: whether a link is followed; if not, it is an error. In a directory that others may write to, a
    ///     link leads to a file of their choice.
    init(_ path: String, content: [UInt8]? = nil, mayBeLink: Bool = true) throws(EditFailure) {
        var status = stat()
        if !mayBeLink, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
            throw EditFailure(message: "'\(path)' is a link; name the file itself")
        }
        self.path = mayBeLink ? Self.resolved(path) : path
        if stat(self.path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            // A device or a pipe must not be replaced by a file.
            throw EditFailure(message: "'\(path)' is not a regular file")
        }
        self.content = if let content { content } else { try Self.content(of: self.path) }
    }

    /// Whether there is anything at this path, including a dangling link.
    static func existsAnything(at path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Makes the directories of the path that are missing, with mode 0755.
    func makeDirectories() throws(EditFailure) { try Self.makeDirectories(Self.directory(of: path)) }

    /// Whether the content has changed since it was read.
    func hasChanged() throws(EditFailure) -> Bool { try Self.content(of: path) != content }

    /// Replaces the file atomically. Owner, group, mode and access control list stay, or are copied from `model`;
    /// security labels and user attributes stay too, as far as this user may set them.
    ///
    /// - Parameters:
    ///   - content: the new content.
    ///   - model: the file whose properties a new file gets; nil, or if it does not exist: `newMode`.
    ///   - newMode: the mode of a new file.
    ///   - isLasting: whether the file must survive a power failure; then missing directories are made too.
    func replace(
        with content: [UInt8], like model: String? = nil, newMode: mode_t = 0o644, isLasting: Bool = true
    ) throws(EditFailure) {
        let directory = Self.directory(of: path)
        if isLasting { try Self.makeDirectories(directory) }
        var status = stat()
        let isOwn = stat(path, &status) == 0
        let isThere = isOwn || (model.map { stat($0, &status) == 0 } ?? false)
        // A name that begins with a full stop is not read as configuration, if the file is left behind. mkstemp(3)
        // replaces the six X.
        var template = Array("\(directory)/.\(path.split(separator: "/").last ?? "").XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw EditFailure("cannot make a file in '\(directory)'", errno) }
        let temporary = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        var isDone = false
        defer {
            close(descriptor)
            if !isDone { unlink(temporary) }
        }
        // The owner first: changing it takes bits of the mode away.
        var mode = isThere ? status.st_mode & 0o7777 : newMode
        var pattern = isOwn ? path : isThere ? model : nil
        if isThere, status.st_uid != geteuid() || status.st_gid != getegid() {
            if fchown(descriptor, status.st_uid, status.st_gid) != 0 {
                // A new file that only resembles the model may keep its own owner. Its group is then a different one,
                // and gets only the rights of all others.
                guard !isOwn, errno == EPERM else { throw EditFailure("cannot give '\(path)' to its owner", errno) }
                mode &= ~0o070 | (mode & 0o007) << 3
                pattern = nil
            }
        }
        // The mode is set after the list: before that, its group bits would apply to the whole group.
        if isThere { try Self.carryOver(from: pattern, to: descriptor, temporary, isOwn: isOwn) }
        guard fchmod(descriptor, mode) == 0 else {
            throw EditFailure("cannot set the mode of '\(temporary)'", errno)
        }
        try Self.write(content, to: descriptor, temporary)
        guard !isLasting || fsync(descriptor) == 0 else { throw EditFailure("cannot write '\(temporary)'", errno) }
        guard rename(temporary, path) == 0 else { throw EditFailure("cannot replace '\(path)'", errno) }
        isDone = true
        if isLasting { Self.sync(directory) }
    }

    /// The file mode creation mask of this process. Reading it sets it for a moment (umask(2)): nothing else of this
    /// program makes files meanwhile.
    static func creationMask() -> mode_t {
        let mask = umask(0o077)
        umask(mask)
        return mask
    }

    /// Copies the access control list, and the labels of the same file. If the list cannot be copied, this throws:
    /// otherwise more users could have access than before.
    ///
    /// - Parameters:
    ///   - old: the path of the old file; nil if there is no list to keep.
    ///   - new: the path of the new file.
    ///   - isOwn: whether the new file replaces the old one; if not, the old file is only the model.
    private static func carryOver(
        from old: String?, to descriptor: Int32, _ new: String, isOwn: Bool
    ) throws(EditFailure) {
        let list = ExtendedAttribute.accessList
        do throws(SystemCallError) {
            if let old, let value = try ExtendedAttribute.value(list, of: old) {
                try ExtendedAttribute.set(list, to: value, of: descriptor)
            } else {
                // Remove the list that a new file inherits from its directory (default ACL).
                try ExtendedAttribute.remove(list, of: descriptor)
            }
        } catch {
            throw EditFailure("cannot keep the access control list of '\(old ?? new)'", error.errno)
        }
        guard isOwn, let old else { return }
        for name in ExtendedAttribute.names(of: old) where isLabel(name) {
            // A label that cannot be kept gives nobody access, so errors are ignored. An equal label is not set again:
            // SELinux would log a denial, each minute where metrics are written.
            guard let value = try? ExtendedAttribute.value(name, of: old),
                (try? ExtendedAttribute.value(name, of: new)) != value
            else { continue }
            try? ExtendedAttribute.set(name, to: value, of: descriptor)
        }
    }

    /// Whether an attribute describes the file, and not its content as the kernel's measurements do (security.ima).
    private static func isLabel(_ attribute: String) -> Bool {
        attribute.hasPrefix("user.") || attribute == "security.selinux" || attribute == "security.SMACK64"
    }

    /// Makes a file in a new directory that only this user can read: editors leave copies beside the file.
    ///
    /// - Parameter directory: the parent of the new directory.
    static func scratch(_ name: String, _ content: [UInt8], in directory: String) throws(EditFailure) -> String {
        // mkdtemp(3) replaces the six X.
        var template = Array("\(directory)/freshet-edit-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw EditFailure("cannot make a directory in '\(directory)'", errno) }
        let path =
            String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self) + "/" + name
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw EditFailure("cannot make '\(path)'", errno) }
        defer { close(descriptor) }
        try write(content, to: descriptor, path)
        return path
    }

    /// Removes such a file and its directory, with all files that the editor has left there.
    static func removeScratch(_ path: String) {
        let directory = directory(of: path)
        for name in names(in: directory) ?? [] { unlink("\(directory)/\(name)") }
        rmdir(directory)
    }

    /// The content of a file; nil if there is none.
    static func content(of path: String) throws(EditFailure) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw EditFailure("cannot read '\(path)'", errno)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count == 0 { return bytes }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw EditFailure("cannot read '\(path)'", errno) }
            bytes += buffer[..<count]
            guard bytes.count <= mostBytes else { throw EditFailure("'\(path)' is too large", EFBIG) }
        }
    }

    /// The largest file that is read: more than freshetd reads.
    private static let mostBytes = 16 << 20

    /// The names in a directory; nil if it cannot be read.
    static func names(in directory: String) -> [String]? {
        guard let stream = opendir(directory) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Whether the path leads to the null device, which masks files of the same name with lower precedence.
    static func isMask(_ path: String) -> Bool {
        var status = stat()
        // 1:3 on every Linux (Documentation/admin-guide/devices.txt).
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 0x103
    }

    /// Whether this user may make and replace files in the directory, or make the directory.
    static func mayWrite(in directory: String) -> Bool {
        if access(directory, F_OK) == 0 { return access(directory, W_OK | X_OK) == 0 }
        let above = self.directory(of: directory)
        return above != directory && mayWrite(in: above)
    }

    private static func makeDirectories(_ directory: String) throws(EditFailure) {
        guard access(directory, F_OK) != 0 else { return }
        let above = self.directory(of: directory)
        if above != directory { try makeDirectories(above) }
        guard mkdir(directory, 0o755) == 0 else {
            if errno == EEXIST { return }
            throw EditFailure("cannot make the directory '\(directory)'", errno)
        }
        // Independent of the umask: the daemon is another user, and reads the files in the directory.
        guard chmod(directory, 0o755) == 0 else {
            throw EditFailure("cannot set the mode of the directory '\(directory)'", errno)
        }
    }

    private static func write(_ content: [UInt8], to descriptor: Int32, _ path: String) throws(EditFailure) {
        var rest = content[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw EditFailure("cannot write '\(path)'", errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Makes the name survive a power failure; errors are ignored.
    private static func sync(_ directory: String) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// The failure of an operation on an edited file.
struct EditFailure: Error, Hashable {
    let message: String
    let errno: Int32

    /// - Parameters:
    ///   - what: the operation that failed.
    ///   - errno: the reason.
    init(_ what: String, _ errno: Int32) {
        self.errno = errno
        message = "\(what): \(strerror(errno).map { String(cString: $0) } ?? "error \(errno)")"
    }

    /// - Parameter message: the whole message.
    init(message: String) {
        self.message = message
        errno = 0
    }

    var failure: CommandFailure {
        // The message has the path as the user gave it, which may come from a script.
        CommandFailure(
            errno == EACCES || errno == EPERM || errno == EROFS ? .notPermitted : .failure,
            DisplayText.harmless(message))
    }
}

/// The identity and the modification time of a file: they change when the file is saved, even unchanged.
struct FileStamp: Hashable {
    private var inode: UInt64 = 0
    private var seconds = 0
    private var nanoseconds = 0

    init(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        inode = UInt64(status.st_ino)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}
