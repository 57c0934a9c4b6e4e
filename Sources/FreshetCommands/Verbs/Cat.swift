import ArgumentParser

struct Cat: Verb {
    static let configuration = CommandConfiguration(
        commandName: "cat",
        abstract: "Print the configuration files that count.",
        discussion: """
            Each below its name, a pipeline's file first and then what is laid over it (NAME.yaml.d): of all the daemon reads, \
            or of the pipelines that are named. Of files of one name the one in /etc/freshet counts, then that in \
            /run/freshet-config, then that in /usr/lib/freshet. They are the files as they are now, and not what was in them at the \
            last reload. No daemon is needed: freshetctl becomes 'freshetd --cat'.

            Examples:
              freshetctl cat jwks
              freshetctl cat 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns of their names; all, and the daemon's own files, if none is named.")
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
    /// The directories of a command line, or those of the daemon that answers; none: freshetd takes the same by itself.
    func configurationDirectories(_ named: [String]) -> [String] {
        guard named.isEmpty, (context.environment["CONFIGURATION_DIRECTORY"] ?? "").isEmpty else { return named }
        switch isPersonalDaemon {
        case true?: return existingConfiguration.map { [$0] } ?? []
        case false?: return systemsConfiguration
        case nil: return []
        }
    }

    /// The system's directories, for a freshetd that would take the caller's own; none: it takes them by itself.
    var systemsConfiguration: [String] {
        guard context.user != 0, existingConfiguration != nil else { return [] }
        // One that is named has to be there.
        return EditPlan.systemDirectories.filter(context.exists)
    }

    private var existingConfiguration: String? {
        Self.personalConfiguration(context.environment).flatMap { context.exists($0) ? $0 : nil }
    }

    /// Where a user's own configuration is: the XDG base directories, as the user's unit has it.
    static func personalConfiguration(_ environment: [String: String]) -> String? {
        if let home = environment["XDG_CONFIG_HOME"], !home.isEmpty { return home + "/freshet" }
        guard let home = environment["HOME"], !home.isEmpty else { return nil }
        return home + "/.config/freshet"
    }
}
