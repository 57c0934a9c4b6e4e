import ArgumentParser
import FreshetControl
import FreshetRender

struct Rollback: Verb {
    static let configuration = CommandConfiguration(
        commandName: "rollback",
        abstract: "Publish an earlier generation again.",
        discussion: """
            Without a number, publishes the newest kept generation before the current one. Generations keep their \
            numbers, and a number can be that of any generation that 'history' lists as kept, also of a newer one. A \
            check that finds the source unchanged leaves the copy as it is. A change at the source replaces the copy, \
            unless it is pinned.

            Examples:
              freshetctl rollback jwks
              freshetctl rollback jwks 6
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The generation.") var number: Int64?
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, number) = (name, number)
        let reply = try session.callDaemon { () throws(ControlClient.Failure) in
            try client.rollBack(name, to: number)
        }
        if options.json { return session.print(json: reply) }
        let now = reply.generation
        guard let replaced = reply.replaced else {
            return session.message(DisplayText.harmless("generation \(now.number) of '\(name)' is current"))
        }
        session.message(
            DisplayText.harmless(
                "generation \(now.number) of '\(name)' is current, instead of \(replaced)"))
        if now.behind == true {
            session.message(
                DisplayText.harmless(
                    "The next change at the source replaces it, unless 'freshetctl pin \(name)' keeps it."))
        }
    }
}
