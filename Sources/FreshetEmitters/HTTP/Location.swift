import CCurl
import FreshetModel

/// Scheme, host and port (RFC 6454). Credentials are bound to an origin.
struct Origin: Hashable, Sendable {
    /// `http` or `https`.
    var scheme: String
    /// In lower case, an IPv6 address in brackets.
    var host: String
    var port: String

    /// The host for messages: without the brackets of an IPv6 address.
    var hostForPeople: String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }
}

/// An absolute `http` or `https` URL. libcurl itself parses it, so that the checked host and the host that libcurl
/// connects to cannot differ.
struct Location: Hashable, Sendable {
    /// The URL without user information and fragment.
    let url: String
    let origin: Origin
    /// The most bytes of a path in a message.
    private static let mostBytesOfPath = 120

    /// The path for messages, without the query, shortened at its end; empty if it is only a slash.
    var pathForPeople: String {
        let rest = url.utf8.dropFirst(origin.scheme.utf8.count + "://".utf8.count)
        guard let start = rest.firstIndex(of: UInt8(ascii: "/")) else { return "" }
        let path = Text.escaped(rest[start...].prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard path.utf8.count > Self.mostBytesOfPath else { return path == "/" ? "" : path }
        return String(decoding: path.utf8.prefix(Self.mostBytesOfPath), as: UTF8.self) + "…"
    }

    /// The user information, decoded.
    let user: String?
    let password: String?

    /// Returns nil if the text is not an absolute `http` or `https` URL.
    init?(_ url: String) {
        guard let parts = URLParts(), parts.set(url) else { return nil }
        self.init(parts)
    }

    /// The location of a `Location` field, which may be relative to this location (RFC 9110, 10.2.2). User information
    /// in the field is dropped: an origin must not choose the credentials that are sent to other origins.
    func resolving(_ reference: String) -> Location? {
        guard let parts = URLParts(), parts.set(url), parts.set(reference) else { return nil }
        parts.removeUser()
        return Location(parts)
    }

    private init?(_ parts: borrowing URLParts) {
        guard let scheme = parts[CURLUPART_SCHEME]?.lowercased(), scheme == "http" || scheme == "https",
            let host = parts[CURLUPART_HOST]?.lowercased(), !host.isEmpty, let port = parts[CURLUPART_PORT]
        else { return nil }
        origin = Origin(scheme: scheme, host: host, port: port)
        user = parts.decoded(CURLUPART_USER)
        password = parts.decoded(CURLUPART_PASSWORD)
        parts.removeUser()
        guard let url = parts[CURLUPART_URL] else { return nil }
        self.url = url
    }
}

/// The locations of URLs that were parsed before: a pipeline requests the same URL each time, and libcurl takes as long
/// to parse it as for a third of the request.
struct LocationCache {
    /// The most locations; then the cache begins again. URLs with values of parameters may differ each time.
    static let limit = 256
    /// Longer URLs are not kept.
    static let mostBytes = 1_024

    private var locations: [ExactText: Location] = [:]
    /// The number of URLs that were parsed, for tests.
    private(set) var parsed = 0

    /// The location; nil if the text is not an absolute `http` or `https` URL.
    subscript(url: String) -> Location? {
        mutating get {
            let key = ExactText(url)
            if let known = locations[key] { return known }
            parsed += 1
            guard let location = Location(url) else { return nil }
            if locations.count >= Self.limit { locations = [:] }
            if url.utf8.count <= Self.mostBytes { locations[key] = location }
            return location
        }
    }
}

/// The owner of libcurl's URL handle.
private struct URLParts: ~Copyable {
    private let raw: OpaquePointer

    init?() {
        guard let raw = curl_url() else { return nil }
        self.raw = raw
    }

    deinit { curl_url_cleanup(raw) }

    /// Sets the URL, or resolves a reference against the present URL.
    func set(_ url: String) -> Bool {
        curl_url_set(raw, CURLUPART_URL, url, UInt32(CURLU_URLENCODE)) == CURLUE_OK
    }

    func removeUser() {
        for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT] {
            curl_url_set(raw, part, nil, 0)
        }
    }

    /// A part of the URL, not decoded; the scheme's default port if the URL has no port.
    subscript(part: CURLUPart) -> String? {
        text(of: part, flags: part == CURLUPART_PORT ? UInt32(CURLU_DEFAULT_PORT) : 0)
    }

    func decoded(_ part: CURLUPart) -> String? { text(of: part, flags: UInt32(CURLU_URLDECODE)) }

    private func text(of part: CURLUPart, flags: UInt32) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(raw, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
