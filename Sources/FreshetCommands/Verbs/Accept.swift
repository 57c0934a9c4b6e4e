import ArgumentParser
import FreshetControl
import FreshetRender

struct Accept: Verb {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Make content the copy that a check has refused.",
        discussion: """
            What a check refuses is kept aside for a week. 'diff NAME --candidate' shows how it differs from the copy, and \
            with its digest, or how that begins, exactly what was looked at is accepted. It becomes a new generation; the \
            checks stay, and pass this content alone when it comes again.

            Examples:
              freshetctl diff jwks --candidate
              freshetctl accept jwks
              freshetctl accept jwks 5d3c91
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "How the digest begins of what is meant.") var digest: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let digest, digest.isEmpty || digest.utf8.count > 64 || !digest.allSatisfy(\.isHexDigit) {
            throw ValidationError("The digest is up to 64 hexadecimal digits; 'diff NAME --candidate' shows it.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, digest) = (name, digest)
        let reply = try session.asking { () throws(ControlClient.Failure) in try client.accept(name, digest) }
        if options.json { return session.print(json: reply) }
        let before = reply.replaced.map { ", instead of \($0)" } ?? ""
        session.say(DisplayText.harmless("generation \(reply.generation.number) of '\(name)' is current\(before)"))
    }
}
