/// A URL and its expected answer: they prove that the network reaches the internet, and not a captive portal.
package struct NetworkProbe: Hashable, Sendable {
    /// The absolute URL, `http` or `https`, without user information, validated when the configuration was read.
    package var url: String
    /// The host of the URL as written, without port and without the brackets of an IPv6 address.
    package var host: String
    /// The expected status of the URL itself; nil: any from 200 to 299.
    package var status: Int?

    package init(url: String, host: String, status: Int? = nil) {
        self.url = url
        self.host = host
        self.status = status
    }

    /// Whether an answer of the URL itself with this status is the proof.
    package func accepts(status answered: Int) -> Bool {
        status.map { $0 == answered } ?? (200..<300).contains(answered)
    }

    /// The URL for people, without its query, which may be a secret.
    package var text: String { String(url.prefix { $0 != "?" }) }
}
