import ArgumentParser
import FreshetControl
import FreshetRender

struct Pin: Verb {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keep a pipeline's current copy from being replaced.",
        discussion: """
            Until 'unpin', and across restarts. The source is asked as before; 'status' and the journal say when it has other \
            content.

            Examples:
              freshetctl pin jwks
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name
        let reply = try session.asking { () throws(ControlClient.Failure) in try client.pin(name) }
        if options.json { return session.print(json: reply) }
        let number = reply.generation.map { "\($0.number)" } ?? "-"
        session.say(
            DisplayText.harmless(
                reply.changed
                    ? "'\(name)' is pinned at generation \(number)"
                    : "nothing changed: '\(name)' is pinned at generation \(number) already"))
    }
}

struct Unpin: Verb {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "Let a pinned copy be replaced again.",
        discussion: """
            What the source has becomes the copy at the next check, also where the copy was rolled back; 'refresh' checks at \
            once.

            Examples:
              freshetctl unpin jwks
              freshetctl refresh jwks --wait
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let name = name
        let reply = try session.asking { () throws(ControlClient.Failure) in try client.unpin(name) }
        if options.json { return session.print(json: reply) }
        session.say(
            DisplayText.harmless(
                reply.changed
                    ? "'\(name)' is not pinned any more; its next check, or 'freshetctl refresh \(name)', takes what the "
                        + "source has"
                    : "nothing changed: '\(name)' is not pinned"))
    }
}
