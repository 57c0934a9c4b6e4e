/// A client that gets access tokens with its own secret: the client credentials grant of OAuth 2.0 (RFC 6749, 4.4).
package struct OAuth2Client: Hashable, Sendable {
    /// The absolute URL of the token endpoint, `https`, or `http` on this machine.
    package var tokenURL: String
    /// The host of that URL, without port and brackets.
    package var host: String
    /// The client's identifier; it is not a secret.
    package var identifier: String
    /// The requested scope (RFC 6749, 3.3); nil: the server's default.
    package var scope: String?

    package init(tokenURL: String, host: String, identifier: String, scope: String? = nil) {
        self.tokenURL = tokenURL
        self.host = host
        self.identifier = identifier
        self.scope = scope
    }

    /// Identifies the token: clients with the same values share one.
    ///
    /// - Parameter secret: the name of the client's secret. Names contain no line break.
    package func key(withSecret secret: String) -> String {
        "oauth2\n\(secret)\n\(tokenURL)\n\(identifier)\n\(scope ?? "")"
    }

    /// The request for a token. The client authenticates with the Basic scheme (RFC 6749, 2.3.1).
    ///
    /// - Parameter secret: the name of the client's secret.
    package func tokenRequest(withSecret secret: String) -> HTTPSource {
        var body = "grant_type=client_credentials"
        if let scope { body += "&scope=\(Self.formEncoded(scope))" }
        var source = HTTPSource(
            url: tokenURL,
            headers: [
                HTTPHeader("Accept", "application/json"),
                HTTPHeader("Authorization", credential: secret, as: .client(identifier)),
            ], host: host, method: .post(body: body, contentType: "application/x-www-form-urlencoded"))
        // Another server must not get the client's secret.
        source.redirects = .none
        return source
    }

    /// The text as in `application/x-www-form-urlencoded` (RFC 6749, appendix B).
    package static func formEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: " "): result += "+"
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                result += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return result
    }
}
