import FreshetEmitters
import FreshetEventLoop
import FreshetSystemd
import Glibc

/// The directories of the daemon.
enum DaemonDirectories {
    /// The directories that the options name. A directory that a flag names is not looked up, so that a user without a
    /// name and a home directory, as in a container, causes no error.
    static func find(_ options: DaemonOptions) throws -> ServiceDirectories {
        let flags = [
            ("STATE_DIRECTORY", options.stateDirectory), ("CACHE_DIRECTORY", options.cacheDirectory),
            ("RUNTIME_DIRECTORY", options.runtimeDirectory),
            // The configuration has its own search path.
            ("CONFIGURATION_DIRECTORY", "/"),
        ]
        var environment = options.environment
        for (variable, flag) in flags where flag != nil { environment[variable] = "/" }
        var directories = try ServiceDirectories(name: "freshet", environment: environment, userID: options.owner)
        directories.state = options.stateDirectory ?? directories.state
        directories.cache = options.cacheDirectory ?? directories.cache
        directories.runtime = options.runtimeDirectory ?? directories.runtime
        return directories
    }

    /// The daemon's own directories, whose files cannot be sources.
    static func own(_ directories: ServiceDirectories?, _ options: DaemonOptions) -> PrivateDirectories {
        let credentials = Credentials(environment: options.environment).directory
        return PrivateDirectories(
            whole: [directories?.state, directories?.runtime, credentials].compactMap(\.self),
            cache: directories?.cache)
    }

    /// Creates a directory and its parents, as `mkdir -p -m MODE` does. Under systemd, they exist already.
    static func make(_ path: String, mode: mode_t) throws(FreshetEventLoop.SystemCallError) {
        let components = path.split(separator: "/")
        var made = path.hasPrefix("/") ? "" : "."
        for (index, component) in components.enumerated() {
            made += "/\(component)"
            guard mkdir(made, index == components.count - 1 ? mode : 0o755) != 0 else { continue }
            var status = stat()
            let reason = errno
            guard stat(made, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw FreshetEventLoop.SystemCallError(
                    "mkdir", errno: reason == EEXIST ? ENOTDIR : reason, subject: made)
            }
        }
    }
}

extension DaemonOptions {
    /// Whether the daemon is the system service and not a user's own service. A user's own daemon only looks for
    /// sessions of that user.
    var isSystemService: Bool {
        ServiceDirectories.isSystemService(environment: environment, userID: owner)
    }

    /// The rule for programs that may run as a hook or a check.
    var trust: PathTrust { PathTrust(user: geteuid(), isPersonal: !isSystemService) }
}
