import ArgumentParser
import FreshetControl
import FreshetRender

struct Pin: Verb {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keep the current copy of a pipeline.",
        discussion: """
            A pinned copy is not replaced until 'unpin', also after a restart of the daemon. The source is checked as \
            before; 'status' and the journal show when it has other content.

            Examples:
              freshetctl pin jwks
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name
        let reply = try session.callDaemon { () throws(ControlClient.Failure) in try client.pin(name) }
        if options.json { return session.print(json: reply) }
        let number = reply.generation.map { "\($0.number)" } ?? "-"
        session.message(
            DisplayText.harmless(
                reply.changed
                    ? "'\(name)' is pinned at generation \(number)"
                    : "nothing changed: '\(name)' is pinned at generation \(number) already"))
    }
}

struct Unpin: Verb {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Allow a pinned copy to be replaced again.",
        discussion: """
            The next check publishes the content of the source, also if the copy was rolled back; 'refresh' checks \
            immediately.

            Examples:
              freshetctl unpin jwks
              freshetctl refresh jwks --wait
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name
        let reply = try session.callDaemon { () throws(ControlClient.Failure) in try client.unpin(name) }
        if options.json { return session.print(json: reply) }
        session.message(
            DisplayText.harmless(
                reply.changed
                    ? "'\(name)' is no longer pinned; the next check, or 'freshetctl refresh \(name)', publishes the content "
                        + "of the source"
                    : "nothing changed: '\(name)' is not pinned"))
    }
}
