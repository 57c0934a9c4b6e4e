import ArgumentParser
import FreshetControl
import FreshetRender

struct Rollback: Verb {
    static let configuration = CommandConfiguration(
        commandName: "rollback",
        abstract: "Make an earlier generation the current copy again.",
        discussion: """
            Without a number, the newest one before the current one. It keeps its number; the others stay, and \
            'rollback NAME NUMBER' takes any of those that 'history' calls kept, newer ones too. A check that finds what the \
            source had before leaves it so. Other content at the source replaces it, unless 'pin' keeps it.

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
        let reply = try session.asking { () throws(ControlClient.Failure) in
            try client.rollBack(name, to: number)
        }
        if options.json { return session.print(json: reply) }
        let now = reply.generation
        guard let replaced = reply.replaced else {
            return session.say(DisplayText.harmless("generation \(now.number) of '\(name)' is current"))
        }
        session.say(
            DisplayText.harmless(
                "generation \(now.number) of '\(name)' is current, instead of \(replaced)"))
        if now.behind == true {
            session.say(
                DisplayText.harmless(
                    "The next change at the source replaces it, unless 'freshetctl pin \(name)' keeps it."))
        }
    }
}
