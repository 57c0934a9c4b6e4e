/// Requests whose URL comes from data.
extension HTTPSource {
    /// The place that stands for all of the URL, which an item of a list fills; nil: the configuration knows it.
    package var placeOfURL: URLTemplate.Place? { URLTemplate.whole(url) }

    /// The request at a URL that an item of a list names. Whoever gives the list chooses whom this machine asks: so the URL
    /// stays within the list's own origin, unless the configuration lets it lead elsewhere, and then what is meant for that
    /// origin, header fields, client certificate and certificate authority, stays behind. The body of a POST is meant for
    /// it too, and without it the question would be another: it is not asked.
    ///
    /// - Parameters:
    ///   - text: what stands at the place.
    ///   - list: the request for the list that has the item; nil: it came from no origin. What is asked through a socket
    ///     comes from none either: the name in its URL says nothing of who is there by that name.
    ///   - resolve: the URL that a reference means at a URL.
    func following(
        _ text: String, at place: URLTemplate.Place, from list: HTTPSource?, sameOrigin: Bool,
        resolve: (_ reference: String, _ base: String) -> WebAddress?
    ) throws(RunFailure) -> HTTPSource {
        func refusal(_ what: String) -> RunFailure { RunFailure(.content, "the URL at '{\(place)}' \(what)") }
        guard text.utf8.count <= URLTemplate.maximumLength else {
            throw refusal("is longer than \(URLTemplate.maximumLength) bytes")
        }
        // Nothing is guessed: what is no URL as it stands is none.
        guard Self.isAbsolute(text), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let there = resolve(text, text)
        else { throw refusal("is no absolute http or https URL") }
        guard !Self.hasUserInformation(text) else { throw refusal("names a user or a password") }
        let asked = list.flatMap { resolve($0.url, $0.url) }
        let home = list?.unixSocket == nil ? asked?.origin : nil
        guard !sameOrigin || home == there.origin else {
            let name = home.map { ", \($0)" } ?? (list == nil ? "" : ", which is asked through a socket")
            throw refusal(
                "is at \(there.origin), another origin than that of the list\(name); "
                    + "to follow such URLs, without headers and credentials: each.same-origin: false")
        }
        // As for redirects: what was asked for encrypted is not asked for in the clear.
        guard asked?.origin.hasPrefix("https:") != true || there.origin.hasPrefix("https:") else {
            throw refusal("would be asked for unencrypted, \(there.origin), and the list was not")
        }
        var source = self
        source.url = there.url
        source.host = there.host
        guard home != there.origin else { return source }
        guard method == .get else {
            throw refusal(
                "is at \(there.origin), and the body of a POST goes to the origin of the list only; "
                    + "ask by GET, or write the URL down")
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
