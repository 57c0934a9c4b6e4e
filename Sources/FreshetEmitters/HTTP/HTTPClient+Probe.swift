package import FreshetPipelines

/// Proofs of the network.
extension HTTPClient: Probing {
    /// The most of a portal's URL that is shown.
    static let shownLength = 200

    /// Asks the probe's URL and follows nothing. Of header fields it sends libcurl's own and `User-Agent`. As for
    /// sources, certificates are checked, and proxies are those of the environment.
    package func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError) {
        guard !Task.isCancelled else { throw .cancelled }
        guard let location = Location(probe.url) else {
            throw .failed(RunFailure(.local, "it is not an http or https URL"))
        }
        guard let easy = takeHandle() else { throw .failed(Self.noMemory) }
        let exchange = HTTPExchange(
            easy, FetchRequest(source: .http(HTTPSource(url: probe.url, host: probe.host))),
            HTTPSource(url: probe.url, host: probe.host), at: location, fields: [], options: options, for: .status)
        let result = await perform(exchange, epoch: epoch)
        guard let answer = exchange.answer else {
            _ = try result.get()
            throw .failed(RunFailure(.transient, "no answer"))
        }
        guard !probe.accepts(status: answer.status) else { return }
        throw .failed(RunFailure(.refused, answer.text(wanted: probe.status)))
    }
}

extension HTTPExchange.Answer {
    /// Such as `answered 302 to http://portal.example/login`: without a query, which may hold what names a person.
    fileprivate func text(wanted: Int?) -> String {
        let instead = wanted.map { " instead of \($0)" } ?? ""
        guard let redirect else { return "answered \(status)\(instead)" }
        let target = redirect.url.prefix { $0 != "?" }
        let shown = target.prefix(HTTPClient.shownLength)
        return "answered \(status)\(instead) to \(Text.escaped(String(shown)))\(shown.count < target.count ? "…" : "")"
    }
}
