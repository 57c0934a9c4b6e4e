import FreshetEventLoop
import Glibc

/// A file that gets another content: what it was, and how the new one takes its place.
struct EditedFile {
    /// Where it is, links followed if they may be.
    let path: String
    /// What it held when it was looked at; nil: it was not there.
    let content: [UInt8]?

    /// - Parameters:
    ///   - path: its name, which may be a link to it, or nothing yet.
    ///   - content: what was read of it already; nil: it is read now.
    ///   - mayBeLink: a link is followed; else it is an error. In a directory that others may write to, a link leads to a
    ///     file of their choice.
    init(_ path: String, content: [UInt8]? = nil, mayBeLink: Bool = true) throws(EditFailure) {
        var status = stat()
        if !mayBeLink, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
            throw EditFailure(message: "'\(path)' is a link; name the file itself")
        }
        self.path = mayBeLink ? Self.resolved(path) : path
        if stat(self.path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            // A device or a pipe is not to become a file.
            throw EditFailure(message: "'\(path)' is not a regular file")
        }
        self.content = if let content { content } else { try Self.content(of: self.path) }
    }

    /// Whether there is something of this name, a link to nothing included.
    static func isNamed(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Whether somebody else has changed it since.
    func isOther() throws(EditFailure) -> Bool { try Self.content(of: path) != content }

    /// Puts a content in its place, which readers see wholly or not at all. Owner, group, mode and access control list
    /// stay, or are those of `model`; what else labels the file stays too, as far as this user may label.
    ///
    /// - Parameters:
    ///   - content: the whole of it.
    ///   - model: what a file that was not there is to be like; nil, or if that is not there: mode 0644.
    ///   - isLasting: it outlasts a power cut, and directories that are not there are made.
    func replace(
        with content: [UInt8], like model: String? = nil, isLasting: Bool = true
    ) throws(EditFailure) {
        let directory = Self.directory(of: path)
        if isLasting { try Self.makeDirectories(directory) }
        var status = stat()
        let isOwn = stat(path, &status) == 0
        let isThere = isOwn || (model.map { stat($0, &status) == 0 } ?? false)
        // A name that begins with a full stop is not read as configuration, should it be left behind. The six X are what
        // mkstemp(3) puts letters of its own for.
        var template = Array("\(directory)/.\(path.split(separator: "/").last ?? "").XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw EditFailure("cannot make a file in '\(directory)'", errno) }
        let temporary = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var isDone = false
        defer {
            close(descriptor)
            if !isDone { unlink(temporary) }
        }
        // The owner first: changing it takes bits of the mode away.
        var mode = isThere ? status.st_mode & 0o7777 : 0o644
        var pattern = isOwn ? path : isThere ? model : nil
        if isThere, status.st_uid != geteuid() || status.st_gid != getegid() {
            if fchown(descriptor, status.st_uid, status.st_gid) != 0 {
                // What is only like another file may be one's own. Then its group is another one, which gets no more than
                // all others.
                guard !isOwn, errno == EPERM else { throw EditFailure("cannot give '\(path)' to its owner", errno) }
                mode &= ~0o070 | (mode & 0o007) << 3
                pattern = nil
            }
        }
        // The mode after the list: until there is that, its bits for the group would let all of the group in.
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

    /// Gives the new file what its mode does not say of the old one. Nobody may do more with it than before, so without
    /// the list of those who may it is a failure.
    ///
    /// - Parameters:
    ///   - old: the path of the old one; nil: there is none whose list could be kept.
    ///   - new: the path of the new file.
    ///   - isOwn: it is the same file; or else another one is only to be like it.
    private static func carryOver(
        from old: String?, to descriptor: Int32, _ new: String, isOwn: Bool
    ) throws(EditFailure) {
        let list = ExtendedAttribute.accessList
        do throws(SystemCallError) {
            if let old, let value = try ExtendedAttribute.value(list, of: old) {
                try ExtendedAttribute.set(list, to: value, of: descriptor)
            } else {
                // A directory gives what is made in it a list (default ACL), which this file does not have.
                try ExtendedAttribute.remove(list, of: descriptor)
            }
        } catch {
            throw EditFailure("cannot keep the access control list of '\(old ?? new)'", error.errno)
        }
        guard isOwn, let old else { return }
        for name in ExtendedAttribute.names(of: old) where isLabel(name) {
            // Labels and notes: what cannot be kept lets nobody in. One that the file was made with is not set again: to
            // try that is an offence for SELinux, each minute where metrics are written.
            guard let value = try? ExtendedAttribute.value(name, of: old),
                (try? ExtendedAttribute.value(name, of: new)) != value
            else { continue }
            try? ExtendedAttribute.set(name, to: value, of: descriptor)
        }
    }

    /// Whether an attribute is of the file, and not of what is in it, as the kernel's measurements are (security.ima).
    private static func isLabel(_ attribute: String) -> Bool {
        attribute.hasPrefix("user.") || attribute == "security.selinux" || attribute == "security.SMACK64"
    }

    /// A name in a directory of its own that only this user reads: for the editor, who leaves copies beside it.
    ///
    /// - Parameter directory: where such things are.
    static func scratch(_ name: String, _ content: [UInt8], in directory: String) throws(EditFailure) -> String {
        // The six X are mkdtemp(3)'s, as above.
        var template = Array("\(directory)/freshet-edit-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw EditFailure("cannot make a directory in '\(directory)'", errno) }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) + "/" + name
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw EditFailure("cannot make '\(path)'", errno) }
        defer { close(descriptor) }
        try write(content, to: descriptor, path)
        return path
    }

    /// Removes such a file and its directory, with what an editor has left there.
    static func removeScratch(_ path: String) {
        let directory = directory(of: path)
        for name in names(in: directory) ?? [] { unlink("\(directory)/\(name)") }
        rmdir(directory)
    }

    /// What a file holds; nil: there is none.
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

    /// As much as freshetd reads of one file, and more.
    private static let mostBytes = 16 << 20

    /// The names in a directory; nil: there is none that can be read.
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

    /// Whether it is the null device, which hides what has its name below.
    static func isMask(_ path: String) -> Bool {
        var status = stat()
        // 1:3 on every Linux (Documentation/admin-guide/devices.txt).
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == 0x103
    }

    /// Whether this user may make and replace files there, or make the directory.
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
        // Whatever the umask is: the daemon is another user, and has to read what is in it.
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

    /// So that the name outlasts a power cut; a file system that cannot has done what it can.
    private static func sync(_ directory: String) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// Why an edit could not go on.
struct EditFailure: Error, Hashable {
    let message: String
    let errno: Int32

    /// - Parameters:
    ///   - what: what could not be done.
    ///   - errno: why not, says the kernel.
    init(_ what: String, _ errno: Int32) {
        self.errno = errno
        message = "\(what): \(strerror(errno).map { String(cString: $0) } ?? "error \(errno)")"
    }

    /// - Parameter message: all that there is to say.
    init(message: String) {
        self.message = message
        errno = 0
    }

    var failure: CommandFailure {
        CommandFailure(errno == EACCES || errno == EPERM || errno == EROFS ? .notPermitted : .failure, message)
    }
}

/// When a file was written last, and which one it is: whether it was saved, if only as it was.
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
