import ArgumentParser

/// The options that every verb takes, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Use this socket, not $FRESHET_SOCKET or the usual one.", valueName: "path"))
    var socket: String?

    @Flag(help: "Use the caller's own daemon, not the system's.")
    var user = false

    @Flag(help: "Print JSON: the types of the interface io.freshet.Control.")
    var json = false

    @Flag(help: "Print tables without titles and totals.")
    var noLegend = false

    @Flag(help: "Do not use a pager: 'logs' passes this to journalctl; no other command uses one.")
    var noPager = false

    @Flag(name: .shortAndLong, help: "Print only errors.")
    var quiet = false

    /// The options with a value: to find the verb, the value is skipped.
    static let withValue: Set<String> = ["--socket"]
    static let flags: Set<String> = ["--user", "--json", "--no-legend", "--no-pager", "--quiet", "-q"]

    var values: SessionOptions {
        SessionOptions(socket: socket, user: user, json: json, noLegend: noLegend, quiet: quiet)
    }

    func validate() throws {
        if socket?.isEmpty == true { throw ValidationError("--socket needs a path.") }
        if socket != nil, user { throw ValidationError("Give --socket or --user, but not both.") }
    }
}

/// The values of the global options.
struct SessionOptions: Hashable, Sendable {
    var socket: String?
    var user = false
    var json = false
    var noLegend = false
    var quiet = false

    /// Sets an option of ``GlobalOptions/flags``; returns false for any other text.
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

/// The path of the daemon's socket if `--socket` is not given.
enum SocketPath {
    static let name = "freshet/io.freshet.Control"

    /// The socket of the caller's own daemon.
    static func own(_ context: CommandContext) -> String {
        let runtime = context.environment["XDG_RUNTIME_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        return (runtime ?? "/run/user/\(context.user)") + "/" + name
    }

    /// `FRESHET_SOCKET`; else the system's socket for root, and for other users if it exists; else the caller's own. If
    /// neither exists, a user with an own configuration gets the own socket, and any other user the system's: the error
    /// message then names the daemon to start.
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
