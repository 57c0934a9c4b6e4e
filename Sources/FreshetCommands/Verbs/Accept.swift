import ArgumentParser
import FreshetControl
import FreshetRender

struct Accept: Verb {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Publish content that a check rejected.",
        discussion: """
            The last content that a check rejected (the candidate) is kept for a week. 'diff NAME --candidate' shows \
            how it differs from the copy. With a digest, or its beginning, the candidate is published only if it is \
            still the one that you have seen. It becomes a new generation. The checks stay active, but accept the same \
            content in future.

            Examples:
              freshetctl diff jwks --candidate
              freshetctl accept jwks
              freshetctl accept jwks 5d3c91
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The digest of the candidate, or its beginning.") var digest: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let digest, digest.isEmpty || digest.utf8.count > 64 || !digest.allSatisfy(\.isHexDigit) {
            throw ValidationError("The digest is up to 64 hexadecimal digits; 'diff NAME --candidate' shows it.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let (name, digest) = (name, digest)
        let reply = try session.callDaemon { () throws(ControlClient.Failure) in try client.accept(name, digest) }
        if options.json { return session.print(json: reply) }
        let before = reply.replaced.map { ", instead of \($0)" } ?? ""
        session.message(DisplayText.harmless("generation \(reply.generation.number) of '\(name)' is current\(before)"))
    }
}
