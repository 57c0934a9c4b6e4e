/// The directories that contain the configuration.
package struct SearchPath: Hashable, Sendable {
    /// The directories, the one with the highest priority first: a file hides files of the same name in later
    /// directories.
    package var directories: [String]
    /// Whether a missing directory is an error, because a user named the directories.
    package var mustExist: Bool

    /// The administrator's directory, then the one that lasts until the next boot, then the one of packages. Only root
    /// may write to these directories; for that reason the second one is not `/run/freshet`, which belongs to the
    /// service.
    package static let system = SearchPath(directories: ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"])

    package init(directories: [String], mustExist: Bool = false) {
        self.directories = directories
        self.mustExist = mustExist
    }

    /// The path that flags and environment define.
    ///
    /// - Parameters:
    ///   - flags: The directories of `--config-dir`, the one with the highest priority first. If there are any, the
    ///     path contains only these.
    ///   - configurationDirectory: `$CONFIGURATION_DIRECTORY`, which systemd.exec(5) sets, with colons between
    ///     directories. For a system unit this is `/etc/freshet`, and the other directories of the system follow. Any
    ///     other value is a user's own directory, and the path does not contain the system's directories.
    ///   - own: The directory of a user other than root, if flags and environment name no directory; nil if there is no
    ///     such directory.
    package init(flags: [String], configurationDirectory: String?, own: String? = nil) {
        let named = (configurationDirectory ?? "").split(separator: ":").map { Self.plain(String($0)) }
        if !flags.isEmpty {
            self.init(directories: flags.map(Self.plain), mustExist: true)
        } else if named.isEmpty, let own {
            self.init(directories: [Self.plain(own)])
        } else if named.isEmpty || named == Array(Self.system.directories.prefix(1)) {
            self = .system
        } else {
            self.init(directories: named)
        }
    }

    /// Whether the path contains only directories of the system.
    package var isSystemPath: Bool {
        !directories.isEmpty && directories.allSatisfy(Self.system.directories.contains)
    }

    /// The directories as text, such as `/etc/freshet, /usr/lib/freshet`.
    package var text: String { directories.joined(separator: ", ") }

    /// The path without slashes at its end.
    private static func plain(_ path: String) -> String {
        var path = path[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        return String(path)
    }

    /// The path of a name in a directory. For the working directory it is only the name.
    static func path(_ directory: String, _ name: String) -> String {
        switch directory {
        case ".": name
        case "/": "/" + name
        default: directory + "/" + name
        }
    }
}
