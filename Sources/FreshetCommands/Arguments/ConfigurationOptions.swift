import ArgumentParser

/// The directories of the configuration, for verbs that read it without the daemon.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Use this configuration directory, not the usual ones; may be given several times.", valueName: "path"))
    var configDir: [String] = []

    /// The same options for freshetd.
    static func arguments(_ directories: [String]) -> [String] { directories.flatMap { ["--config-dir", $0] } }
}
