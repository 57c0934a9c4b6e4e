import ArgumentParser

/// The options that every verb takes, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The daemon's socket, instead of $FRESHET_SOCKET or the usual place.", valueName: "path"))
    var socket: String?

    @Flag(help: "Talk to the caller's own daemon, not to the system's.")
    var user = false

    @Flag(help: "Print JSON: the types of the interface io.freshet.Control.")
    var json = false

    @Flag(help: "Print tables without titles and totals.")
    var noLegend = false

    @Flag(help: "Accepted for familiarity; there is no pager.")
    var noPager = false

    @Flag(name: .shortAndLong, help: "Say nothing but errors.")
    var quiet = false

    /// Those with a value, for whoever looks for the verb among the arguments.
    static let withValue: Set<String> = ["--socket"]
    static let flags: Set<String> = ["--user", "--json", "--no-legend", "--no-pager", "--quiet", "-q"]

    var values: SessionOptions {
        SessionOptions(socket: socket, user: user, json: json, noLegend: noLegend, quiet: quiet)
    }

    func validate() throws {
        if socket?.isEmpty == true { throw ValidationError("--socket wants a path.") }
        if socket != nil, user { throw ValidationError("Give --socket or --user, but not both.") }
    }
}

/// What the global options say.
struct SessionOptions: Hashable, Sendable {
    var socket: String?
    var user = false
    var json = false
    var noLegend = false
    var quiet = false

    /// Takes one of ``GlobalOptions/flags``; returns whether it is one.
    mutating func set(_ flag: String) -> Bool {
        switch flag {
        case "--user": user = true
        case "--json": json = true
        case "--no-legend": noLegend = true
        case "--no-pager": break
        case "--quiet", "-q": quiet = true
        default: return false
        }
        return true
    }
}

/// Where the daemon's socket is when nobody says so.
enum SocketPath {
    static let name = "freshet/io.freshet.Control"

    /// That of the caller's own daemon.
    static func own(_ context: CommandContext) -> String {
        let runtime = context.environment["XDG_RUNTIME_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        return (runtime ?? "/run/user/\(context.user)") + "/" + name
    }

    /// `FRESHET_SOCKET`; else the system's daemon for root, and for others too if it is there; else the caller's own.
    /// Where neither is there it is the caller's own for those who have configured one: nobody else is to be told how to
    /// start it when it is the system's that has stopped.
    static func find(_ context: CommandContext) -> String {
        let environment = context.environment
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let path = value("FRESHET_SOCKET") { return path }
        let system = "/run/" + name
        guard context.user != 0, !context.exists(system), value("XDG_RUNTIME_DIR") != nil else { return system }
        let own = own(context)
        if context.exists(own) { return own }
        return Session.personalConfiguration(environment).map(context.exists) == true ? own : system
    }
}
