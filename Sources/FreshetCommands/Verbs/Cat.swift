import ArgumentParser

struct Cat: Verb {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the configuration files.",
        discussion: """
            Prints each file below its name: the daemon's own files and those of all pipelines and hooks, or those of \
            the named pipelines. The drop-ins of a file (NAME.yaml.d) follow it. Of several files with the same name, \
            only one is used: the file in /etc/freshet, else in /run/freshet-config, else in /usr/lib/freshet. The \
            content is that on disk now, not that of the last reload. No daemon is needed: freshetctl executes \
            'freshetd --cat'.

            Examples:
              freshetctl cat jwks
              freshetctl cat 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns of their names; without a name, all files.")
    var names: [String] = []
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let directories = session.configurationDirectories(search.configDir)
        throw session.becomeDaemon(
            ["--cat"] + (options.json ? ["--json"] : []) + ConfigurationOptions.arguments(directories) + names)
    }
}

extension Session {
    /// The directories of the command line, or those of the daemon that freshetctl contacts. Empty if freshetd uses
    /// these directories without options.
    func configurationDirectories(_ named: [String]) -> [String] {
        guard named.isEmpty, (context.environment["CONFIGURATION_DIRECTORY"] ?? "").isEmpty else { return named }
        switch isPersonalDaemon {
        case true?: return existingConfiguration.map { [$0] } ?? []
        case false?: return systemsConfiguration
        case nil: return []
        }
    }

    /// The system's directories, for a freshetd that would use the caller's own directory. Empty if freshetd uses the
    /// system's without options.
    var systemsConfiguration: [String] {
        guard context.user != 0, existingConfiguration != nil else { return [] }
        // freshetd reports an error for a directory that is named and does not exist.
        return EditPlan.systemDirectories.filter(context.exists)
    }

    private var existingConfiguration: String? {
        Self.personalConfiguration(context.environment).flatMap { context.exists($0) ? $0 : nil }
    }

    /// The directory of a user's own configuration, by the XDG base directories, as in the user's unit.
    static func personalConfiguration(_ environment: [String: String]) -> String? {
        if let home = environment["XDG_CONFIG_HOME"], !home.isEmpty { return home + "/freshet" }
        guard let home = environment["HOME"], !home.isEmpty else { return nil }
        return home + "/.config/freshet"
    }
}
