import ArgumentParser

struct Check: Verb {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check the configuration files.",
        discussion: """
            Prints all errors as file:line:column; the exit status is 78 if there are errors. No daemon is needed: \
            freshetctl executes 'freshetd --check'. If the daemon runs, the check uses the groups of its process and, \
            as root, its credentials; a lack of either is a warning, because a restart may repair it. As root, it asks \
            polkit whether hooks may manage their units. Lines that begin with 'not checked' name what this user cannot \
            see.

            Hooks that reload a unit need a polkit rule. --polkit prints the rule for all hooks, or for those of the \
            named pipelines, and nothing else.

            Examples:
              freshetctl check
              freshetctl check --config-dir ./etc
              freshetctl check --polkit | sudo tee /etc/polkit-1/rules.d/50-freshet.rules
            """)

    @Flag(help: "Print the polkit rule by which hooks may reload their units.")
    var polkit = false
    @Argument(help: "With --polkit: pipelines, or patterns of their names; without a name, all.")
    var names: [String] = []
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard polkit || names.isEmpty else {
            throw ValidationError("all pipelines are checked together; only --polkit accepts names")
        }
        guard !polkit || !options.json else { throw ValidationError("--polkit prints a rule, not JSON") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let arguments =
            ["--check"] + (polkit ? ["--polkit"] : []) + (options.json ? ["--json"] : []) + socketArguments
            + ConfigurationOptions.arguments(session.configurationDirectories(search.configDir)) + names
        throw session.becomeDaemon(arguments)
    }

    /// The socket of the daemon with whose eyes the check looks, if the caller named one.
    private var socketArguments: [String] {
        // freshetd reads FRESHET_SOCKET itself.
        options.socket.map { ["--socket", $0] } ?? []
    }

    /// Paths of freshetd: beside this executable, as in a build directory; then where distributions install it.
    static func candidates(ownPath: String?) -> [String] {
        let directory = ownPath.flatMap { path in path.lastIndex(of: "/").map { path[..<$0] } }
        var candidates = directory.map { ["\($0)/freshetd"] } ?? []
        for path in ["/usr/libexec/freshetd", "/usr/sbin/freshetd", "/usr/bin/freshetd"]
        where !candidates.contains(path) {
            candidates.append(path)
        }
        return candidates
    }
}

extension Session {
    /// Replaces this process with `freshetd`; returns only the reason of a failure.
    func becomeDaemon(_ arguments: [String]) -> CommandFailure {
        let path: String
        do throws(CommandFailure) {
            path = try daemonProgram()
        } catch {
            return error
        }
        let reason = context.execute(path, arguments)
        return CommandFailure(.failure, "cannot execute '\(path)': \(reason)")
    }

    /// The path of `freshetd`.
    func daemonProgram() throws(CommandFailure) -> String {
        let candidates = Check.candidates(ownPath: context.ownPath)
        guard let path = candidates.first(where: context.isExecutable) else {
            throw CommandFailure(
                .failure, "freshetd is not installed: looked for \(candidates.joined(separator: ", "))")
        }
        return path
    }
}
