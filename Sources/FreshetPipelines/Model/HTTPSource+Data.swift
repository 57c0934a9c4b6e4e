/// Requests whose URL comes from data.
extension HTTPSource {
    /// The placeholder that is the whole URL, filled by an item of a list; nil: the URL comes from the configuration.
    package var urlPlaceholder: URLTemplate.Placeholder? { URLTemplate.whole(url) }

    /// The request for a URL that an item of a list names. The publisher of the list chooses which host this machine
    /// contacts, so the URL must be at the list's own origin unless the configuration allows other origins. A request
    /// to another origin gets no header fields, client certificate and certificate authority, which are meant for the
    /// list's origin. The body of a POST is meant for that origin too, and without it the request would be another one:
    /// it is not made.
    ///
    /// - Parameters:
    ///   - text: the value of the placeholder.
    ///   - - list: the request for the list that has the item; nil: the list came from no origin. A request through a
    ///     socket has
    ///     no origin either, since the host in its URL does not say which service answers.
    ///   - resolve: resolves a reference against a base URL.
    func following(
        _ text: String, at placeholder: URLTemplate.Placeholder, from list: HTTPSource?, sameOrigin: Bool,
        resolve: (_ reference: String, _ base: String) -> WebAddress?
    ) throws(RunFailure) -> HTTPSource {
        func refusal(_ what: String) -> RunFailure { RunFailure(.content, "the URL at '{\(placeholder)}' \(what)") }
        guard text.utf8.count <= URLTemplate.maximumLength else {
            throw refusal("is longer than \(URLTemplate.maximumLength) bytes")
        }
        // Only an absolute URL as written is accepted; nothing is guessed.
        guard Self.isAbsolute(text), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let there = resolve(text, text)
        else { throw refusal("is not an absolute http or https URL") }
        guard !Self.hasUserInformation(text) else { throw refusal("names a user or a password") }
        let listAddress = list.flatMap { resolve($0.url, $0.url) }
        let home = list?.unixSocket == nil ? listAddress?.origin : nil
        guard !sameOrigin || home == there.origin else {
            let name = home.map { ", \($0)" } ?? (list == nil ? "" : ", which is fetched through a socket")
            throw refusal(
                "is at \(there.origin), another origin than that of the list\(name); "
                    + "to follow such URLs, without headers and credentials: each.same-origin: false")
        }
        // As for redirects: an encrypted request does not lead to an unencrypted one.
        guard listAddress?.origin.hasPrefix("https:") != true || there.origin.hasPrefix("https:") else {
            throw refusal("is unencrypted (\(there.origin)), but the list was fetched encrypted")
        }
        var source = self
        source.url = there.url
        source.host = there.host
        guard home != there.origin else { return source }
        guard method == .get else {
            throw refusal(
                "is at \(there.origin), and the body of a POST goes to the origin of the list only; "
                    + "use GET, or write the URL in the configuration")
        }
        source.headers = []
        source.clientCertificate = nil
        source.certificateAuthority = nil
        return source
    }

    private static func isAbsolute(_ url: String) -> Bool {
        let url = url.prefix(8).lowercased()
        return url.hasPrefix("http://") || url.hasPrefix("https://")
    }

    private static func hasUserInformation(_ url: String) -> Bool {
        guard let start = url.firstRange(of: "://")?.upperBound else { return false }
        return url[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }.contains("@")
    }
}
