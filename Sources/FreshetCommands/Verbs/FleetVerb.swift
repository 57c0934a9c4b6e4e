import ArgumentParser
import FreshetControl
import FreshetRender

struct FleetVerb: Verb {
    enum Action: String, CaseIterable, ExpressibleByArgument, Sendable {
        case status, refresh, halt, resume, graph, doctor, setup, key, accounts
    }

    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Show, control, set up and examine a fleet.",
        discussion: """
            status shows which content each pipeline has in the fleet of freshet.yaml, how many members have it, and \
            which ones are behind or fail. refresh demands a check of the origin, once for the whole fleet, and waits \
            for it. halt stops the roll-out of a pipeline where it is; resume lets it go on. graph draws the fleet as \
            SVG.

            setup creates the buckets of the fleet: it prints what it will do, and asks. It needs the seed of a user \
            that may do so. With --mirror, it creates the mirror of this site instead. doctor examines servers, rights, limits and clocks, one line each with a remedy; the exit \
            status is 1 if there is an error. key prints the public key of a seed, and with --new makes a seed first. accounts prints accounts for the configuration of nats-server: each \
            argument is ROLE=KEY, with a role of admin, fetch, follow, operator or site. With --leaf, they are for a leaf \
            node of --domain.

            No daemon is needed: freshetctl executes 'freshetd --fleet'.

            Exit status of refresh, halt and resume: 0 a machine that fetches has done it; 75 none has answered for \
            a minute.

            Examples:
              freshetctl fleet status --seed /root/operator.nk
              freshetctl fleet refresh jwks --seed /root/operator.nk
              freshetctl fleet graph --seed /root/operator.nk > fleet.svg
              freshetctl fleet key --new --seed /root/fetch.nk
              freshetctl fleet accounts admin=UA… fetch=UB… follow=UC… operator=UD…
              freshetctl fleet setup --seed /root/admin.nk
              freshetctl fleet doctor --seed /etc/freshet/fleet.nk
            """)

    @Argument(help: "status, refresh, halt, resume, graph, doctor, setup, key or accounts.") var action: Action
    @Argument(
        help: ArgumentHelp(
            "With status, refresh, halt, resume and graph: pipelines. With accounts: users, each ROLE=KEY.",
            valueName: "pipeline"))
    var names: [String] = []
    @Option(help: ArgumentHelp("Use the NKEY seed in this file.", valueName: "file")) var seed: String?
    @Flag(help: "With key: write a new seed to the file, which must not exist.") var new = false
    @Flag(help: "With setup: do not ask.") var yes = false
    @Option(help: ArgumentHelp("With setup: keep each bucket on 1, 3 or 5 servers.", valueName: "count"))
    var replicas: Int?
    @Flag(
        help: "With setup: create the mirror of this site instead of the buckets. With --leaf: the leaf node has one.")
    var mirror = false
    @Option(
        help: ArgumentHelp(
            "With accounts: the domain of JetStream that has the buckets, for sites.", valueName: "name"))
    var domain: String?
    @Flag(help: "With accounts: the server is a leaf node of the domain.") var leaf = false
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        switch action {
        case .refresh, .halt, .resume:
            guard names.count == 1 else {
                throw ValidationError("'\(action.rawValue)' needs the name of one pipeline.")
            }
        case .status, .graph, .accounts: break
        case .doctor, .setup, .key:
            guard names.isEmpty else { throw ValidationError("'\(action.rawValue)' is for the whole fleet.") }
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let needsOverview = action == .status || action == .graph
        var arguments = ["--fleet", needsOverview ? "status" : action.rawValue]
        arguments += seed.map { ["--seed", $0] } ?? []
        arguments += new ? ["--new"] : []
        arguments += yes ? ["--yes"] : []
        arguments += domain.map { ["--domain", $0] } ?? []
        arguments += leaf ? ["--leaf"] : []
        arguments += mirror ? ["--mirror"] : []
        arguments += replicas.map { ["--replicas", "\($0)"] } ?? []
        arguments += ConfigurationOptions.arguments(session.configurationDirectories(search.configDir))
        arguments += names.isEmpty ? [] : ["--"] + names
        guard needsOverview, !(options.json && action == .status && names.isEmpty) else {
            throw session.becomeDaemon(arguments)
        }
        let overview = try overview(arguments, session)
        for name in names where !overview.pipelines.contains(where: { $0.pipeline == name }) {
            throw CommandFailure(
                .failure, DisplayText.harmless("the fleet has no content of a pipeline '\(name)'"))
        }
        if options.json, action == .status { return session.write(ControlJSON.text(of: overview) + "\n") }
        guard action == .status else {
            return session.write(FleetGraphSVG(overview: overview, times: session.times).text)
        }
        let view = FleetView(overview: overview, times: session.times)
        session.print(view.table, total: view.total)
        if !view.members.rows.isEmpty {
            session.context.output("\n")
            session.print(view.members, total: view.membersTotal)
        }
    }

    private func overview(_ arguments: [String], _ session: Session) throws(CommandFailure) -> FleetOverview {
        switch session.context.child(try session.daemonProgram(), arguments, .collected) {
        case .failed(let reason): throw CommandFailure(.failure, "cannot execute freshetd: \(reason)")
        case .ended(let status, let output, let errorOutput):
            guard status == 0 else {
                let lines = (errorOutput.isEmpty ? output : errorOutput).split(separator: "\n")
                throw CommandFailure(
                    ExitStatus(rawValue: status) ?? .failure,
                    lines.map { DisplayText.harmless(String($0)) }.joined(separator: "\n"))
            }
            guard let overview = ControlJSON.value(of: output, as: FleetOverview.self) else {
                throw CommandFailure(.failure, "freshetd has another version; install the same version of both")
            }
            return overview
        }
    }
}
