package import FreshetPipelines

/// Probes of the network.
extension HTTPClient: Probing {
    /// The most characters of a portal's URL that are shown.
    static let shownLength = 200

    /// Requests the probe's URL and follows no redirect. It sends only libcurl's header fields and `User-Agent`. As for
    /// sources, certificates are checked, and proxies come from the environment.
    package func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError) {
        try await awaitLibrary()
        guard !Task.isCancelled else { throw .cancelled }
        guard let location = Location(probe.url) else {
            throw .failed(RunFailure(.local, "it is not an http or https URL"))
        }
        guard let easy = EasyHandle() else { throw .failed(Self.noMemory) }
        let source = HTTPSource(url: probe.url, host: probe.host)
        let exchange = HTTPExchange(
            easy, HTTPRequest(purpose: .status, source: source, location: location, options: options),
            for: FetchRequest(source: .http(source)))
        let result = await perform(exchange, epoch: epoch)
        guard let answer = exchange.answer else {
            _ = try result.get()
            throw .failed(RunFailure(.transient, "no answer"))
        }
        guard !probe.accepts(status: answer.status) else { return }
        throw .failed(RunFailure(.refused, answer.text(wanted: probe.status)))
    }
}

/// The answer to a request for a status.
struct StatusAnswer: Hashable {
    var status: Int
    /// The target of a redirect; nil if the answer is not a redirect, or its target is not an http or https URL.
    var redirect: Location?

    /// Such as `answered 302 to http://portal.example/login`: without the query, which may contain personal data.
    fileprivate func text(wanted: Int?) -> String {
        let instead = wanted.map { " instead of \($0)" } ?? ""
        guard let redirect else { return "answered \(status)\(instead)" }
        let target = redirect.url.prefix { $0 != "?" }
        let shown = target.prefix(HTTPClient.shownLength)
        return "answered \(status)\(instead) to \(Text.escaped(String(shown)))\(shown.count < target.count ? "…" : "")"
    }
}
