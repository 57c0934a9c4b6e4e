/// Scheme, host and port of a URL (RFC 6454): the unit of the request limits.
package struct HTTPOrigin: Hashable, Sendable, CustomStringConvertible {
    /// Text such as `https://example.com`, in lower case; with the port if it is not the scheme's default port.
    package let description: String

    /// - Parameter url: an absolute URL of HTTP; for any other text the result is nil.
    package init?(of url: String) {
        if let usual = Self.usualForm(url) {
            description = usual
            return
        }
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

    /// The origin of a URL that begins with it as it is written: in lower case, without a user, and without its usual
    /// port. Each run asks for its origin some times.
    private static func usualForm(_ url: String) -> String? {
        let length = url.utf8.withContiguousStorageIfAvailable { bytes -> Int? in
            guard let mark = bytes.firstIndex(of: UInt8(ascii: ":")), bytes.count > mark + 3,
                bytes[mark + 1] == UInt8(ascii: "/"), bytes[mark + 2] == UInt8(ascii: "/"),
                bytes[..<mark].elementsEqual("http".utf8) || bytes[..<mark].elementsEqual("https".utf8)
            else { return nil }
            var end = mark + 3
            while end < bytes.count, isUsual(bytes[end]) { end += 1 }
            guard end > mark + 3 else { return nil }
            if end < bytes.count, bytes[end] == UInt8(ascii: ":") {
                let digits = bytes[(end + 1)...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                guard let first = digits.first, first != UInt8(ascii: "0"), digits.count <= 5,
                    !digits.elementsEqual(mark == 4 ? "80".utf8 : "443".utf8)
                else { return nil }
                end = digits.endIndex
            }
            guard end < bytes.count else { return end }
            switch bytes[end] {
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"): return end
            default: return nil
            }
        }
        guard let length, let length else { return nil }
        return String(Substring(url.utf8.prefix(length)))
    }

    private static func isUsual(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension SourceDefinition {
    /// The origin of the first request of a run; nil: it is not over HTTP, or not known before the run.
    package var firstOrigin: HTTPOrigin? {
        if case .http(let source) = self, source.mirrors != nil { nil } else { origin }
    }

    /// The origin of the source's requests; nil: it makes none over HTTP, or has several sources.
    package var origin: HTTPOrigin? {
        switch self {
        case .http(let source): HTTPOrigin(of: source.url)
        case .command, .file, .copy, .joined: nil
        }
    }
}
