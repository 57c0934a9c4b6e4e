/// Scheme, host and port of a URL (RFC 6454): the unit of the request limits.
package struct HTTPOrigin: Hashable, Sendable, CustomStringConvertible {
    /// Text such as `https://example.com`, in lower case; with the port if it is not the scheme's default port.
    package let description: String

    /// - Parameter url: an absolute URL of HTTP; for any other text the result is nil.
    package init?(of url: String) {
        guard let colon = url.firstIndex(of: ":") else { return nil }
        let scheme = url[..<colon].lowercased()
        let ownPort: Int
        switch scheme {
        case "http": ownPort = 80
        case "https": ownPort = 443
        default: return nil
        }
        let rest = url[colon...]
        guard rest.hasPrefix("://") else { return nil }
        var authority = rest.dropFirst(3).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        var host = authority
        var port = ownPort
        // The colons of an IPv6 address are in brackets.
        if let mark = authority.lastIndex(of: ":"), !authority[mark...].contains("]") {
            host = authority[..<mark]
            let digits = authority[mark...].dropFirst()
            if !digits.isEmpty {
                guard let number = Int(digits) else { return nil }
                port = number
            }
        }
        guard !host.isEmpty else { return nil }
        description = "\(scheme)://\(host.lowercased())" + (port == ownPort ? "" : ":\(port)")
    }
}

extension SourceDefinition {
    /// The origin of the source's requests; nil: it makes none over HTTP, or has several sources.
    package var origin: HTTPOrigin? {
        switch self {
        case .http(let source): HTTPOrigin(of: source.url)
        case .command, .file, .copy, .joined: nil
        }
    }
}
