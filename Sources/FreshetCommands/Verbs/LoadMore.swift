import ArgumentParser
import FreshetControl
import FreshetRender

struct LoadMore: Verb {
    static let configuration = CommandConfiguration(
        commandName: "load-more",
        abstract: "Load a further page.",
        discussion: """
            Loads a page of a pipeline whose pages are loaded on demand ('pages.load' is a number), or of one of its \
            branches, which is named by the keys that lead to it. Without a branch, loads a page where only one branch \
            has more; 'freshetctl status' shows the branches. The copy is committed with the page; the rest of the \
            copy stays. Exit status: 66 nothing more to load, 75 nothing was requested, because the network is not \
            reachable, or because the origin or a budget allows a request only later.

            Examples:
              freshetctl load-more homepage --wait
              freshetctl load-more homepage comedy --wait
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "The keys that lead to the branch.") var branch: [String] = []
    @Flag(help: "Wait for the page; show the progress on a terminal.") var wait = false
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let request = ControlMessage.LoadMore(
            name: name, path: branch.isEmpty ? nil : branch, wait: wait ? true : nil)
        let result: LoadMoreResult
        let progress = ProgressLine([name], in: session) { () throws(ControlClient.Failure) in
            try session.connectBeside()
        }
        defer { progress.clear() }
        do throws(ControlClient.Failure) {
            result = try client.loadMore(request, every: wait ? progress.interval : nil) { progress.draw() }
        } catch .refused(.tryLater(let hint)) {
            // Unlike refresh, load-more has no --force.
            throw CommandFailure(
                .tryLater, DisplayText.harmless("nothing was requested: \(session.times.retryHint(hint))"))
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
        if !wait { return session.message(line) }
        if !options.quiet { session.print(line) }
    }
}
