import FreshetEventLoop
import Glibc

/// Turns a process of root into a process of the service's user before it reads anything that others can influence. A
/// process of root never fetches, runs a program of a pipeline, parses a response or runs jq.
///
/// The user is, in this order: the user of `--user`; the owner of the state directory; `freshet`. To stay root, for
/// example in a container without another user, `--user root` is required.
enum PrivilegeDrop {
    /// The work that the process does afterwards.
    enum Purpose: Sendable {
        /// A check, `--cat` or a dry run, which do not write to the cache. Without a service's user, the process
        /// becomes `nobody`.
        case reading
        /// The daemon or `--once`, which write to the cache. Missing directories are created for the user.
        case running
        /// The examination of an existing cache. Only the owner of the state directory has the rights for it.
        case examining
    }

    enum Failure: Error, Hashable, CustomStringConvertible {
        case notRoot(user: String)
        case noSuchUser(String)
        case noServiceUser
        case rootsDirectory(String, user: String)
        case systemCall(String, path: String?, Int32)

        var description: String {
            switch self {
            case .notRoot(let user): "--user \(user): only root can become another user"
            case .noSuchUser(let user): "--user \(user): there is no such user"
            case .noServiceUser:
                "freshetd does no work as root, and there is no user '\(ServiceUser.standardName)': create it "
                    + "(systemd-sysusers), or name a user with --user"
            case .rootsDirectory(let path, let user):
                "freshetd does no work as root, and \(path) belongs to root: give it to the service's user "
                    + "(chown -R \(user): \(path)), or name another directory"
            case .systemCall(let call, let path, let error):
                "cannot give up root's rights: \(call)\(path.map { " \($0)" } ?? ""): "
                    + String(cString: strerror(error))
            }
        }
    }

    /// The directories that the daemon writes to, with the modes from the unit file.
    struct Directories: Sendable {
        var state: String
        var cache: String
        var runtime: String

        fileprivate var modes: [(path: String, mode: mode_t)] { [(state, 0o700), (cache, 0o755), (runtime, 0o755)] }
    }

    /// Gives up root's rights. Does nothing in a process of another user. Call it before any thread starts.
    ///
    /// - Parameter name: the user of `--user`; nil: the owner of the state directory, or `freshet`.
    /// - Returns: the new user of the process; nil if the user does not change.
    static func perform(
        for purpose: Purpose, in directories: Directories, as name: String?
    ) throws(Failure) -> ServiceUser? {
        guard geteuid() == 0 else {
            if let name, ServiceUser(named: name)?.identifier != geteuid() { throw .notRoot(user: name) }
            return nil
        }
        guard let user = try user(for: purpose, in: directories, as: name), user.identifier != 0 else { return nil }
        if purpose == .running {
            for (path, mode) in directories.modes { try giveDirectory(path, mode, to: user) }
        }
        try become(user)
        return user
    }

    private static func user(
        for purpose: Purpose, in directories: Directories, as name: String?
    ) throws(Failure) -> ServiceUser? {
        if let name {
            guard let user = ServiceUser(named: name) else { throw .noSuchUser(name) }
            return user
        }
        var status = stat()
        if stat(directories.state, &status) == 0 {
            if status.st_uid != 0 { return ServiceUser(status.st_uid, group: status.st_gid) }
            // A daemon with --user root made this directory, so only root can have written there.
            if purpose == .examining { return nil }
        }
        if let user = ServiceUser(named: ServiceUser.standardName), user.identifier != 0 { return user }
        if purpose == .reading, let user = ServiceUser(named: "nobody"), user.identifier != 0 { return user }
        throw .noServiceUser
    }

    /// Gives a directory to the user if the directory is new or empty.
    private static func giveDirectory(_ path: String, _ mode: mode_t, to user: ServiceUser) throws(Failure) {
        try makeParents(of: path)
        let isNew = mkdir(path, mode) == 0
        guard isNew || errno == EEXIST else { throw .systemCall("mkdir", path: path, errno) }
        var status = stat()
        guard stat(path, &status) == 0 else { throw .systemCall("stat", path: path, errno) }
        // A directory of another user stays as it is; the daemon reports it if it cannot write there.
        guard status.st_uid == 0 else { return }
        guard isNew || isEmpty(path) else { throw .rootsDirectory(path, user: user.text) }
        // Not through a symbolic link: its target may be any directory.
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { throw .systemCall("open", path: path, errno) }
        defer { close(directory) }
        guard fchown(directory, user.identifier, user.group) == 0, fchmod(directory, mode) == 0 else {
            throw .systemCall("fchown", path: path, errno)
        }
    }

    private static func makeParents(of path: String) throws(Failure) {
        var parent = ""
        for component in path.split(separator: "/").dropLast() {
            parent += "/\(component)"
            guard mkdir(parent, 0o755) == 0 || errno == EEXIST else { throw .systemCall("mkdir", path: parent, errno) }
        }
    }

    private static func isEmpty(_ path: String) -> Bool {
        guard let directory = opendir(path) else { return false }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let isOwn = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 3) {
                    strcmp($0, ".") == 0 || strcmp($0, "..") == 0
                }
            }
            if !isOwn { return false }
        }
        return true
    }

    private static func become(_ user: ServiceUser) throws(Failure) {
        let hasGroups =
            if let name = user.name {
                initgroups(name, user.group) == 0
            } else {
                withUnsafePointer(to: user.group) { setgroups(1, $0) == 0 }
            }
        guard hasGroups else { throw .systemCall("initgroups", path: nil, errno) }
        // If root calls setgid and setuid, they also set the real and the saved number (setuid(2)).
        guard setgid(user.group) == 0 else { throw .systemCall("setgid", path: nil, errno) }
        guard setuid(user.identifier) == 0 else { throw .systemCall("setuid", path: nil, errno) }
        // With SECBIT_NO_SETUID_FIXUP (capabilities(7)) the kernel leaves the capabilities in place.
        guard setuid(0) != 0 else { throw .systemCall("setuid", path: nil, EPERM) }
        // The change of the user has reset the dumpable attribute (prctl(2)).
        ProcessInspection.forbid()
    }
}
