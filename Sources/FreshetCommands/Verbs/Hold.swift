import ArgumentParser
import FreshetControl
import FreshetRender

struct Hold: Verb {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Keep pipelines from running.",
        discussion: """
            Until 'release', whatever fires, and across restarts. A run under way ends by itself, the copy stays as it is, \
            and what is heard meanwhile is acted on when it is released.

            Examples:
              freshetctl hold catalogue      # its origin is being moved
              freshetctl release catalogue   # and runs at once if something fired
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        try Holding.change(try session.expanded(names, client), session) { name throws(ControlClient.Failure) in
            try client.hold(name)
        } say: { name, isNew in
            isNew
                ? "'\(name)' is held: nothing of it runs until 'freshetctl release \(name)'"
                : "nothing changed: '\(name)' is held already"
        }
    }
}

struct Release: Verb {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Let held pipelines run again.",
        discussion: """
            What was heard while a pipeline was held, or was due, is acted on now.

            Examples:
              freshetctl release catalogue
              freshetctl release 'feed-*'
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        try Holding.change(try session.expanded(names, client), session) { name throws(ControlClient.Failure) in
            try client.release(name)
        } say: { name, isNew in
            isNew ? "'\(name)' is no longer held" : "nothing changed: '\(name)' is not held"
        }
    }
}

/// What the two have in common.
private enum Holding {
    /// Changes one after the other. A name that is no pipeline's keeps none of the others from it, as with systemctl, and
    /// is a failure in the end.
    static func change(
        _ names: [String], _ session: Session,
        _ change: (String) throws(ControlClient.Failure) -> ControlMessage.Held, say: (String, Bool) -> String
    ) throws(CommandFailure) {
        var unknown: ExitStatus?
        for name in names {
            let reply: ControlMessage.Held
            do throws(ControlClient.Failure) {
                reply = try change(name)
            } catch {
                let failure = session.failure(error)
                guard case .refused(.noSuchPipeline) = error else { throw failure }
                session.context.talk("freshetctl: \(failure.message)\n")
                unknown = failure.status
                continue
            }
            if session.options.json {
                session.print(json: reply)
            } else {
                session.say(DisplayText.harmless(say(name, reply.changed)))
            }
        }
        if let unknown { throw CommandFailure(unknown) }
    }
}
