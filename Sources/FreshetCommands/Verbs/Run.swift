import ArgumentParser

struct Run: Verb {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Try a pipeline and keep nothing: run NAME --dry-run.",
        discussion: """
            Fetches, transforms and checks as a run of the daemon does, prints what would change, and keeps nothing. No \
            daemon is needed, and one that runs is not disturbed. It is freshetd that does it: freshetctl becomes \
            'freshetd --dry-run'.

            Exit status: 0 whether the copy would change or not; with --detailed-exitcode 2 if it would. 1 if the run \
            failed, the copy cannot be read or there is no such pipeline, 78 if its configuration has faults.

            Examples:
              freshetctl run jwks --dry-run
              freshetctl run jwks --dry-run --output - | jq .
              freshetctl run homepage --dry-run --set language=de --detailed-exitcode
            """)

    @Argument(help: "The pipeline.")
    var name: String
    @Flag(help: "Commit nothing; it has to be there.")
    var dryRun = false
    @Option(
        name: .customLong("set"), parsing: .singleValue,
        help: ArgumentHelp(
            "A parameter's value, instead of its default; may be given several times.", valueName: "name=value"))
    var settings: [String] = []
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Where the content goes that would be committed; - is standard output, and what is said of it then goes to "
                + "standard error.", valueName: "file"))
    var output: String?
    @Flag(name: .customLong("detailed-exitcode"), help: "End with 2 if the copy would change.")
    var detailedExitCode = false
    @OptionGroup var search: ConfigurationOptions
    @Option(help: ArgumentHelp("Where the copies are, instead of the usual place.", valueName: "path"))
    var cacheDir: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard dryRun else {
            throw ValidationError(
                "add --dry-run; to run it for good: freshetctl refresh \(name) --wait")
        }
    }

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
