/// What proves that the network leads to where it should, and not to a captive portal: a URL, and its answer.
package struct NetworkProbe: Hashable, Sendable {
    /// The absolute URL, `http` or `https`, without user information, checked when the configuration was read.
    package var url: String
    /// The host of the URL as written, without port and without the brackets of an IPv6 address.
    package var host: String
    /// The status that the URL itself has to answer with; nil: any from 200 to 299.
    package var status: Int?

    package init(url: String, host: String, status: Int? = nil) {
        self.url = url
        self.host = host
        self.status = status
    }

    /// Whether an answer with this status, of the URL itself, proves it.
    package func accepts(status answered: Int) -> Bool {
        status.map { $0 == answered } ?? (200..<300).contains(answered)
    }

    /// The URL as people are shown it: its query may be a secret.
    package var text: String { String(url.prefix { $0 != "?" }) }
}
