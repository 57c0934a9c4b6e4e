import ArgumentParser

struct FleetVerb: Verb {
    enum Action: String, CaseIterable, ExpressibleByArgument, Sendable { case setup, doctor, key }

    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Set up and examine a fleet.",
        discussion: """
            setup creates the buckets of the fleet in freshet.yaml: it prints what it will do, and asks. It needs the \
            seed of a user that may do so. doctor examines servers, rights, limits and clocks, one line each with a \
            remedy; the exit status is 1 if there is an error. key prints the public key of a seed, and with --new \
            makes a seed first. No daemon is needed: freshetctl executes 'freshetd --fleet'.

            Examples:
              freshetctl fleet key --new --seed /root/fetch.nk
              freshetctl fleet setup --seed /root/admin.nk
              freshetctl fleet doctor --seed /etc/freshet/fleet.nk
            """)

    @Argument(help: "setup, doctor or key.") var action: Action
    @Option(help: ArgumentHelp("Use the NKEY seed in this file.", valueName: "file")) var seed: String?
    @Flag(help: "With key: write a new seed to the file, which must not exist.") var new = false
    @Flag(help: "With setup: do not ask.") var yes = false
    @Option(help: ArgumentHelp("With setup: keep each bucket on 1, 3 or 5 servers.", valueName: "count"))
    var replicas: Int?
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        var arguments = ["--fleet", action.rawValue]
        arguments += seed.map { ["--seed", $0] } ?? []
        arguments += new ? ["--new"] : []
        arguments += yes ? ["--yes"] : []
        arguments += replicas.map { ["--replicas", "\($0)"] } ?? []
        arguments += ConfigurationOptions.arguments(session.configurationDirectories(search.configDir))
        throw session.becomeDaemon(arguments)
    }
}
