import ArgumentParser
import FreshetControl
import FreshetRender

struct LoadMore: Verb {
    static let configuration = CommandConfiguration(
        commandName: "load-more",
        abstract: "Load a further page.",
        discussion: """
            Of a pipeline whose pages are loaded on demand ('pages.load' is a number), or of one of its branches: its key, \
            or the keys that lead to it. Without a branch, at the only place where there are more. 'freshetctl status' shows \
            the places. The copy is committed with the page, and all else of it stays. Exit status 66 says that there is \
            nothing more to load, 75 that nothing was asked, as the network is not there, or an origin or a budget asks \
            for patience.

            Examples:
              freshetctl load-more homepage --wait
              freshetctl load-more homepage comedy --wait
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The branch's key, and before it those of the branches around it.") var branch: [String] = []
    @Flag(help: "Wait until the page is there, and show on a terminal how far it is.") var wait = false
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let request = ControlMessage.LoadMore(
            name: name, path: branch.isEmpty ? nil : branch, wait: wait ? true : nil)
        let result: LoadMoreResult
        let progress = ProgressLine([name], in: session) { try? session.connect() }
        defer { progress.clear() }
        do throws(ControlClient.Failure) {
            result = try client.loadMore(request, every: wait ? progress.interval : nil) { progress.draw() }
        } catch .refused(.tryLater(let hint)) {
            // Unlike a refresh it has no --force.
            throw CommandFailure(
                .tryLater, DisplayText.harmless("nothing was asked: \(session.times.patience(hint))"))
        } catch {
            throw session.failure(error)
        }
        progress.clear()
        if options.json { session.print(json: ControlMessage.LoadedMore(result: result)) }
        let line = LoadMoreView.text(result, waited: wait)
        guard LoadMoreView.succeeded(result, waited: wait) else {
            throw CommandFailure(.failure, line)
        }
        if options.json { return }
        if !wait { return session.say(line) }
        if !options.quiet { session.print(line) }
    }
}
