import ArgumentParser
import FreshetControl
import FreshetRender

/// `signals`: lists, follows and fires signals.
struct Signals: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signals",
        abstract: "List, follow or fire signals.",
        usage: """
            freshetctl signals [--follow [<name> ...]]
            freshetctl signals fire <name> ...
            """,
        discussion: """
            Lists the sources of signals: the present fact, how often each fired, how many events it ignored, and the \
            cause of the last firing. With --follow, prints new occurrences instead.

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
        abstract: "List or follow signals.",
        discussion: """
            A name is one of the list, or the first word of several: 'network', 'file', 'dbus'. With --follow and \
            --json, each line is a JSON object.
            """)

    @Argument(help: "With --follow: signals; without a name, all.") var names: [String] = []
    @Flag(help: "Print each occurrence, and each change of a fact, as it happens.") var follow = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if !follow, !names.isEmpty {
            throw ValidationError("Names need --follow; 'freshetctl signals fire NAME' fires a signal.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if follow { return try follow(client, session) }
        let signals = try session.callDaemon { () throws(ControlClient.Failure) in try client.signals() }
        if options.json { return session.print(json: ControlMessage.Signals(signals: signals)) }
        let times = session.times
        let table = Table(
            columns: [
                // In a narrow terminal, the present fact matters more than the last firing.
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
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.followSignals(names, endingWithReaderOf: session.context.outputDescriptor) { event in
                guard let event else {
                    if session.context.isTerminal { session.message("Waiting for events; end with Ctrl-C.") }
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
        abstract: "Fire a signal, to test its subscribers.",
        discussion: """
            All pipelines that subscribe to the signal receive it, as if the event had happened; 'fresh-for' and the \
            other keys apply. The journal and the causes of runs name the user who fired it. 'reload' is only the \
            signal: 'freshetctl reload' reads the configuration. To run a single pipeline, use 'freshetctl refresh \
            NAME'.

            Examples:
              freshetctl signals fire network
              freshetctl signals fire file /etc/freshet/regions
            """)

    @Argument(help: "The signal, as 'freshetctl signals' lists it; its words need no quotes.") var name: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name.joined(separator: " ")
        let fired = try session.callDaemon { () throws(ControlClient.Failure) in try client.fireSignal(name) }
        if options.json { return session.print(json: fired) }
        let received =
            fired.pipelines == 0
            ? "no pipeline subscribes to it" : "received by \(Count.text(fired.pipelines, "pipeline"))"
        session.message(DisplayText.harmless("\(name): fired, \(received)"))
    }
}
