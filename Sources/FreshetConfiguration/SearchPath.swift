/// The directories in which configuration is looked for.
package struct SearchPath: Hashable, Sendable {
    /// The first hides files of the same name in those after it.
    package var directories: [String]
    /// Somebody named these directories, so that one that is missing is a fault.
    package var mustExist: Bool

    /// The administrator's directory, then the one that lasts until the next boot, then the one of packages. Only root may
    /// write to each, so that none of them is `/run/freshet`, which belongs to the service.
    package static let system = SearchPath(directories: ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"])

    package init(directories: [String], mustExist: Bool = false) {
        self.directories = directories
        self.mustExist = mustExist
    }

    /// The path that flags and environment ask for.
    ///
    /// - Parameters:
    ///   - flags: The directories of `--config-dir`, the highest first. If there are any, they alone count.
    ///   - configurationDirectory: `$CONFIGURATION_DIRECTORY`, which systemd.exec(5) sets, with colons between
    ///     directories. For a system unit that is `/etc/freshet`, and the rest of the system's path follows it; any
    ///     other is a user's own, and system-wide pipelines are none of that user's.
    ///   - own: the directory of a user other than root, where flags and environment name none; nil: there is none.
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

    /// Whether what is found there is the system's, or a part of that.
    package var isSystems: Bool {
        !directories.isEmpty && directories.allSatisfy(Self.system.directories.contains)
    }

    /// The directories for people, such as `/etc/freshet, /usr/lib/freshet`.
    package var text: String { directories.joined(separator: ", ") }

    /// The path without slashes at its end.
    private static func plain(_ path: String) -> String {
        var path = path[...]
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        return String(path)
    }

    /// A name below a directory; below the working directory it is the name alone.
    static func path(_ directory: String, _ name: String) -> String {
        switch directory {
        case ".": name
        case "/": "/" + name
        default: directory + "/" + name
        }
    }
}
