import ArgumentParser

struct Run: Verb {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Try a pipeline without publishing.",
        discussion: """
            Fetches, transforms and checks as a run of the daemon does, prints what would change, and keeps nothing. \
            No daemon is needed, and a running daemon is not affected: freshetctl executes 'freshetd --dry-run'. \
            'refresh --wait' runs a pipeline and publishes.

            Exit status: 0 the run succeeded; 2 the copy would change (with --detailed-exitcode only); 1 the run \
            failed, the copy cannot be read, or there is no such pipeline; 78 the configuration has errors.

            Examples:
              freshetctl run jwks
              freshetctl run jwks --output - | jq .
              freshetctl run homepage --set language=de --detailed-exitcode
            """)

    @Argument(help: "The pipeline.")
    var name: String
    @Flag(help: "Commit nothing: this is always so.")
    var dryRun = false
    @Option(
        name: .customLong("set"), parsing: .singleValue,
        help: ArgumentHelp(
            "Set a parameter to this value; may be given several times.", valueName: "name=value"))
    var settings: [String] = []
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the content that would be committed to this file; with - to standard output, and the report to "
                + "standard error.", valueName: "file"))
    var output: String?
    @Flag(name: .customLong("detailed-exitcode"), help: "Exit with status 2 if the copy would change.")
    var detailedExitCode = false
    @OptionGroup var search: ConfigurationOptions
    @Option(help: ArgumentHelp("Use the copies in this cache directory.", valueName: "path"))
    var cacheDir: String?
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        var arguments = ["--dry-run=\(name)"]
        arguments += settings.flatMap { ["--set", $0] }
        arguments += output.map { ["--output=\($0)"] } ?? []
        arguments += detailedExitCode ? ["--detailed-exitcode"] : []
        arguments += ConfigurationOptions.arguments(session.configurationDirectories(search.configDir))
        arguments += cacheDir.map { ["--cache-dir", $0] } ?? []
        arguments += options.json ? ["--json"] : []
        arguments += options.quiet ? ["--quiet"] : []
        throw session.becomeDaemon(arguments)
    }
}
