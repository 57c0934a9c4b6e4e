import ArgumentParser
import FreshetControl
import FreshetRender

struct Hold: Verb {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Stop pipelines from running.",
        discussion: """
            A held pipeline does not run until 'release', also after a restart of the daemon. A run in progress ends \
            normally, and the copy stays. Signals that fire during the hold take effect at 'release'.

            Examples:
              freshetctl hold catalogue      # its origin is moving
              freshetctl release catalogue   # runs now if a signal fired
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        try HoldChange.change(try session.expanded(names, client), session) { name throws(ControlClient.Failure) in
            try client.hold(name)
        } message: { name, isNew in
            isNew
                ? "'\(name)' is held: it does not run until 'freshetctl release \(name)'"
                : "nothing changed: '\(name)' is held already"
        }
    }
}

struct Release: Verb {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Allow held pipelines to run again.",
        discussion: """
            Signals that fired and runs that were due during the hold take effect now.

            Examples:
              freshetctl release catalogue
              freshetctl release 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        try HoldChange.change(try session.expanded(names, client), session) { name throws(ControlClient.Failure) in
            try client.release(name)
        } message: { name, isNew in
            isNew ? "'\(name)' is no longer held" : "nothing changed: '\(name)' is not held"
        }
    }
}

/// The common part of `hold` and `release`.
private enum HoldChange {
    /// Changes one pipeline after the other. After an unknown name the others are changed too, as systemctl does; the
    /// exit status is then that of a failure.
    static func change(
        _ names: [String], _ session: Session,
        _ change: (String) throws(ControlClient.Failure) -> ControlMessage.Held, message: (String, Bool) -> String
    ) throws(CommandFailure) {
        var unknown: ExitStatus?
        for name in names {
            let reply: ControlMessage.Held
            do throws(ControlClient.Failure) {
                reply = try change(name)
            } catch {
                let failure = session.failure(error)
                guard case .refused(.noSuchPipeline) = error else { throw failure }
                session.context.printError("freshetctl: \(failure.message)\n")
                unknown = failure.status
                continue
            }
            if session.options.json {
                session.print(json: reply)
            } else {
                session.message(DisplayText.harmless(message(name, reply.changed)))
            }
        }
        if let unknown { throw CommandFailure(unknown) }
    }
}
