import CCurl
import Glibc

/// The address of a server: `https://HOST[:PORT]`, or `http://HOST[:PORT]` for a server on this machine.
///
/// The schemes are those of libcurl, which makes the connection: `https` is TLS from the first byte, so the server needs
/// `handshake_first: true` in its block `tls`. `http` is a plain connection, and only for loopback addresses. The
/// default port is 4222.
public struct NATSServerAddress: Hashable, Sendable, CustomStringConvertible {
    public static let defaultPort: UInt16 = 4_222

    /// The host, in brackets if it is an IPv6 address.
    public let host: String
    public let port: UInt16
    /// Whether the connection is encrypted.
    public let usesTLS: Bool

    /// Reads a URL. libcurl's own parser does it, so that the checked host is the host of the connection.
    ///
    /// - Throws: ``NATSError/invalidServer(_:)``, or ``NATSError/plainTextToNetwork(host:)``.
    public init(_ url: String) throws(NATSError) {
        // The message must not contain a URL that may have a password.
        guard let handle = curl_url() else { throw .invalidServer(CurlHandles.missingReason) }
        defer { curl_url_cleanup(handle) }
        let code = curl_url_set(handle, CURLUPART_URL, url, 0)
        guard code == CURLUE_OK else { throw .invalidServer(String(cString: curl_url_strerror(code))) }
        func part(_ part: CURLUPart) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(handle, part, &text, 0) == CURLUE_OK, let text else { return nil }
            defer { curl_free(text) }
            return String(cString: text)
        }
        guard let scheme = part(CURLUPART_SCHEME), scheme == "https" || scheme == "http" else {
            throw .invalidServer("write https://HOST:PORT, or http://127.0.0.1:PORT")
        }
        guard part(CURLUPART_USER) == nil, part(CURLUPART_PASSWORD) == nil else {
            throw .invalidServer("it has user information; use an NKEY")
        }
        guard part(CURLUPART_PATH) ?? "/" == "/", part(CURLUPART_QUERY) == nil, part(CURLUPART_FRAGMENT) == nil else {
            throw .invalidServer("it has more than a host and a port")
        }
        guard let host = part(CURLUPART_HOST), !host.isEmpty else { throw .invalidServer("it has no host") }
        guard let port = UInt16(part(CURLUPART_PORT) ?? "\(Self.defaultPort)"), port > 0 else {
            throw .invalidServer("its port is not a number from 1 to 65535")
        }
        usesTLS = scheme == "https"
        guard usesTLS || Self.isLoopback(host) else { throw .plainTextToNetwork(host: Text.escaped(host)) }
        self.host = host
        self.port = port
    }

    /// The URL for libcurl.
    var url: String { "\(usesTLS ? "https" : "http")://\(host):\(port)/" }

    /// Host and port, for messages.
    public var description: String { "\(Text.escaped(host)):\(port)" }

    /// Whether a host is this machine: 127.0.0.0/8, `::1`, or `localhost`, which libcurl resolves itself.
    private static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" { return true }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
        var six = in6_addr()
        guard host.hasPrefix("["), host.hasSuffix("]"),
            inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &six) == 1
        else { return false }
        return withUnsafeBytes(of: &six) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }
}
