import ArgumentParser

/// Where the configuration is, for verbs that read it themselves.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A configuration directory, instead of the usual ones; may be given several times.", valueName: "path"))
    var configDir: [String] = []

    /// The same, as freshetd takes them.
    static func arguments(_ directories: [String]) -> [String] { directories.flatMap { ["--config-dir", $0] } }
}
