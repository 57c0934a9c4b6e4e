import ArgumentParser
import FreshetControl
import FreshetRender

/// `signals`: lists, follows and fires the sources of signals.
struct Signals: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signals",
        abstract: "Show, follow or raise the sources of signals.",
        usage: """
            freshetctl signals [--follow [<name> ...]]
            freshetctl signals fire <name> ...
            """,
        discussion: """
            Without a verb of its own, lists the sources: the present fact, how often each fired and how often something \
            was ignored as minor, and what fired last. With --follow, prints what happens from now on instead.

            Examples:
              freshetctl signals
              freshetctl signals --follow network resume
              freshetctl signals fire network
            """,
        subcommands: [SignalsList.self, SignalsFire.self],
        defaultSubcommand: SignalsList.self)
}

struct SignalsList: Verb {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the sources of signals, or follow them.",
        discussion: """
            A name is one of the list, or its first word for all that begin with it: 'network', 'file', 'dbus'. With \
            --follow and --json, each line is a JSON object.

            Examples:
              freshetctl signals
              freshetctl signals --follow network resume
            """)

    @Argument(help: "With --follow: signals; all of them if none is named.") var names: [String] = []
    @Flag(help: "Print each occurrence, and each change of a fact, as it happens.") var follow = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if !follow, !names.isEmpty {
            throw ValidationError("Names go with --follow; 'freshetctl signals fire NAME' raises a signal.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if follow { return try follow(client, session) }
        let signals = try session.asking { () throws(ControlClient.Failure) in try client.signals() }
        if options.json { return session.print(json: ControlMessage.Signals(signals: signals)) }
        let times = session.times
        let table = Table(
            columns: [
                // What is so now matters more than why it fired last.
                .init("SIGNAL", shrinksTo: 12), .init("FACT", shrinksTo: 26), .init("FIRED", .right, goes: 2),
                .init("IGNORED", .right, goes: 4), .init("LAST", goes: 1), .init("DETAIL", shrinksTo: 8, goes: 3),
            ],
            rows: signals.map { signal in
                [
                    Table.Cell(signal.name),
                    signal.unavailable.map { Table.Cell("unavailable: \($0)", .busy) } ?? Table.Cell(signal.fact),
                    Table.Cell(String(signal.fired)),
                    Table.Cell(signal.ignored.map { String($0) } ?? "-"),
                    Table.Cell(signal.lastFired.map(times.relative) ?? "-"),
                    Table.Cell(signal.lastDetail ?? ""),
                ]
            })
        session.print(table, total: "\(Count.text(signals.count, "signal")) listed.")
    }

    private func follow(_ client: ControlClient, _ session: Session) throws(CommandFailure) {
        let names = names.isEmpty ? nil : names
        let palette = session.palette
        try session.asking { () throws(ControlClient.Failure) in
            try client.followSignals(names, endingWithReaderOf: session.context.outputDescriptor) { event in
                guard let event else {
                    if session.context.isTerminal { session.say("Listening; end with Ctrl-C.") }
                    return true
                }
                let line =
                    options.json
                    ? ControlJSON.text(of: event)
                    : palette.charset.text(EventView.signal(event, session.times, palette))
                return session.context.outputBytes(Array((line + "\n").utf8)[...])
            }
        }
    }
}

struct SignalsFire: Verb {
    static let configuration = CommandConfiguration(
        commandName: "fire",
        abstract: "Raise a signal by hand, to test what listens to it.",
        discussion: """
            All pipelines that listen to it hear it, as they would the real thing; 'fresh-for' and the like apply. The \
            journal and the causes of runs say who raised it. 'reload' is the signal alone: 'freshetctl reload' reads the \
            configuration. What is a single pipeline's is raised with 'freshetctl refresh NAME'.

            Examples:
              freshetctl signals fire network
              freshetctl signals fire file /etc/freshet/regions
            """)

    @Argument(help: "The signal, as 'freshetctl signals' lists it; its words need no quotes.") var name: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name.joined(separator: " ")
        let fired = try session.asking { () throws(ControlClient.Failure) in try client.fireSignal(name) }
        if options.json { return session.print(json: fired) }
        let heard =
            fired.pipelines == 0 ? "no pipeline listens to it" : "heard by \(Count.text(fired.pipelines, "pipeline"))"
        session.say(DisplayText.harmless("\(name): raised, \(heard)"))
    }
}
