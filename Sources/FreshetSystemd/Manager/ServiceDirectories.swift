/// Where a service keeps its things: what the service manager says, else what the file hierarchy says.
///
/// | | set by the manager | else, as root | else, as a user |
/// | --- | --- | --- | --- |
/// | state | `STATE_DIRECTORY` | `/var/lib/NAME` | `$XDG_STATE_HOME/NAME`, `~/.local/state/NAME` |
/// | cache | `CACHE_DIRECTORY` | `/var/cache/NAME` | `$XDG_CACHE_HOME/NAME`, `~/.cache/NAME` |
/// | runtime | `RUNTIME_DIRECTORY` | `/run/NAME` | `$XDG_RUNTIME_DIR/NAME`, `/run/user/UID/NAME` |
/// | configuration | `CONFIGURATION_DIRECTORY` | `/etc/NAME` | `$XDG_CONFIG_HOME/NAME`, `~/.config/NAME` |
///
/// Sources: systemd.exec(5) for the variables of a unit, file-hierarchy(7), and the XDG base directory specification,
/// by which a relative path in a variable is to be ignored. No directory is made or looked at.
public struct ServiceDirectories: Hashable, Sendable {
    /// What must survive a restart and cannot be fetched again.
    public var state: String
    /// What may be removed at any moment.
    public var cache: String
    /// Sockets and the like, gone after a restart of the machine.
    public var runtime: String
    /// Where configuration is looked for; a file in an earlier one replaces its namesake in a later one. A service of the
    /// system reads `/run/NAME-config`, too, and not `/run/NAME`: that belongs to the service's user, who could then
    /// change the configuration.
    public var configuration: [String]

    /// - Parameters:
    ///   - name: the directories' own name, such as `freshet`.
    ///   - environment: the process's environment.
    ///   - userID: the effective user, 0 for root.
    public init(
        name: String, environment: [String: String], userID: UInt32
    ) throws(ServiceDirectoriesError) {
        let environment = Environment(values: environment, userID: userID, name: name)
        state = try environment.directory("STATE_DIRECTORY", system: "/var/lib", user: "XDG_STATE_HOME", ".local/state")
        cache = try environment.directory("CACHE_DIRECTORY", system: "/var/cache", user: "XDG_CACHE_HOME", ".cache")
        runtime = try environment.runtime()
        configuration = try environment.configuration()
    }

    /// Whether a process is a service of the system, and not a person's own: root's is, and so is one whose
    /// configuration the manager says is below `/etc`, since a system service may have any user.
    public static func isSystemService(environment: [String: String], userID: UInt32) -> Bool {
        Environment(values: environment, userID: userID, name: "").isSystemService
    }
}

/// Why the directories could not be named.
public enum ServiceDirectoriesError: Error, Hashable, Sendable, CustomStringConvertible {
    /// An ordinary user's directories are below the home directory, and `HOME` is no absolute path. `variable` would
    /// name the directory itself.
    case noHome(variable: String)

    public var description: String {
        switch self {
        case .noHome(let variable):
            "HOME is not set to an absolute path: set it, or name the directory itself in \(variable)"
        }
    }
}

private struct Environment {
    let values: [String: String]
    let userID: UInt32
    let name: String

    var isSystemService: Bool { userID == 0 || fromManager("CONFIGURATION_DIRECTORY")?.hasPrefix("/etc/") == true }

    /// The manager joins several directories by colons; the first one is the service's main one.
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
