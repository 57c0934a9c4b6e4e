/// The directories of a service: set by the service manager, otherwise the defaults of the file hierarchy.
///
/// | | set by the service manager | otherwise, as root | otherwise, as a user |
/// | --- | --- | --- | --- |
/// | state | `STATE_DIRECTORY` | `/var/lib/NAME` | `$XDG_STATE_HOME/NAME`, `~/.local/state/NAME` |
/// | cache | `CACHE_DIRECTORY` | `/var/cache/NAME` | `$XDG_CACHE_HOME/NAME`, `~/.cache/NAME` |
/// | runtime | `RUNTIME_DIRECTORY` | `/run/NAME` | `$XDG_RUNTIME_DIR/NAME`, `/run/user/UID/NAME` |
/// | configuration | `CONFIGURATION_DIRECTORY` | `/etc/NAME` | `$XDG_CONFIG_HOME/NAME`, `~/.config/NAME` |
///
/// Sources: systemd.exec(5) for the variables of a unit, file-hierarchy(7), and the XDG base directory specification,
/// according to which a relative path in a variable is ignored. No directory is created or checked.
public struct ServiceDirectories: Hashable, Sendable {
    /// Data that must survive a restart and cannot be fetched again.
    public var state: String
    /// Data that may be removed at any moment.
    public var cache: String
    /// Sockets and other files that are removed when the machine restarts.
    public var runtime: String
    /// The directories of configuration files; a file in an earlier one replaces the file with the same name in a later
    /// one. A system service also reads `/run/NAME-config`. It does not read `/run/NAME`: that directory belongs to the
    /// service's user, who could otherwise change the configuration.
    public var configuration: [String]

    /// - Parameters:
    ///   - name: The name of the directories, such as `freshet`.
    ///   - environment: The process's environment.
    ///   - userID: The effective user, 0 for root.
    public init(
        name: String, environment: [String: String], userID: UInt32
    ) throws(ServiceDirectoriesError) {
        let environment = Environment(values: environment, userID: userID, name: name)
        state = try environment.directory("STATE_DIRECTORY", system: "/var/lib", user: "XDG_STATE_HOME", ".local/state")
        cache = try environment.directory("CACHE_DIRECTORY", system: "/var/cache", user: "XDG_CACHE_HOME", ".cache")
        runtime = try environment.runtime()
        configuration = try environment.configuration()
    }

    /// Whether a process is a system service, and not a user's own: a process of root is, and so is a process whose
    /// configuration directory, set by the service manager, is below `/etc`, since a system service may have any user.
    public static func isSystemService(environment: [String: String], userID: UInt32) -> Bool {
        Environment(values: environment, userID: userID, name: "").isSystemService
    }
}

/// Why the directories could not be determined.
public enum ServiceDirectoriesError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A user's directories are below the home directory, and `HOME` is not an absolute path. `variable` could set the
    /// directory instead.
    case noHome(variable: String)

    public var description: String {
        switch self {
        case .noHome(let variable):
            "HOME is not an absolute path; set HOME, or set the directory in \(variable)"
        }
    }
}

private struct Environment {
    let values: [String: String]
    let userID: UInt32
    let name: String

    var isSystemService: Bool { userID == 0 || fromManager("CONFIGURATION_DIRECTORY")?.hasPrefix("/etc/") == true }

    /// The service manager separates several directories by colons; the first one is the service's main directory.
    private func fromManager(_ variable: String) -> String? {
        values[variable]?.split(separator: ":").first.map(String.init).flatMap(Self.absolute)
    }

    private static func absolute(_ path: String) -> String? { path.hasPrefix("/") ? path : nil }

    private func home(for variable: String) throws(ServiceDirectoriesError) -> String {
        guard let home = values["HOME"].flatMap(Self.absolute) else { throw .noHome(variable: variable) }
        return home
    }

    func directory(
        _ variable: String, system: String, user xdg: String, _ belowHome: String
    ) throws(ServiceDirectoriesError) -> String {
        if let path = fromManager(variable) { return path }
        if userID == 0 { return "\(system)/\(name)" }
        if let path = values[xdg].flatMap(Self.absolute) { return "\(path)/\(name)" }
        return try "\(home(for: variable))/\(belowHome)/\(name)"
    }

    func runtime() throws(ServiceDirectoriesError) -> String {
        if let path = fromManager("RUNTIME_DIRECTORY") { return path }
        if userID == 0 { return "/run/\(name)" }
        let base = values["XDG_RUNTIME_DIR"].flatMap(Self.absolute) ?? "/run/user/\(userID)"
        return "\(base)/\(name)"
    }

    func configuration() throws(ServiceDirectoriesError) -> [String] {
        let main = try directory("CONFIGURATION_DIRECTORY", system: "/etc", user: "XDG_CONFIG_HOME", ".config")
        if isSystemService { return [main, "/run/\(name)-config", "/usr/lib/\(name)"] }
        let shared = values["XDG_CONFIG_DIRS"]?.split(separator: ":").map(String.init).compactMap(Self.absolute) ?? []
        return [main] + (shared.isEmpty ? ["/etc/xdg"] : shared).map { "\($0)/\(name)" }
    }
}
