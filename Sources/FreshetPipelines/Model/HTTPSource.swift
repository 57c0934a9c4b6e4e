internal import FreshetModel

/// A request for data over HTTP.
package struct HTTPSource: Hashable, Sendable {
    /// The absolute URL, `http` or `https`, validated when the configuration was read.
    package var url: String
    /// Request header fields in the order of the configuration. They are sent to the URL's own origin only, never with
    /// a redirect to another origin.
    package var headers: [HTTPHeader]
    /// The host of the URL as written, without port and without the brackets of an IPv6 address.
    package var host: String
    package var method: Method
    /// The absolute path of a Unix socket that the request goes through, whatever the URL's host is; nil: the request
    /// connects to the host.
    package var unixSocket: String? {
        get { rare.unixSocket }
        set { rare.unixSocket = newValue }
    }
    /// The client certificate for the URL's own origin; nil: none.
    package var clientCertificate: ClientCertificate? {
        get { rare.clientCertificate }
        set { rare.clientCertificate = newValue }
    }
    /// The absolute path of a file of PEM certificates that alone are trusted for the URL's own origin. nil: the
    /// system's certificate authorities.
    package var certificateAuthority: String? {
        get { rare.certificateAuthority }
        set { rare.certificateAuthority = newValue }
    }
    /// The redirects that are followed.
    package var redirects: Redirects {
        get { rare.redirects }
        set { rare.redirects = newValue }
    }
    /// Whether a body is accepted whose end is marked only by the end of its connection (RFC 9112, 6.3). A truncated
    /// body then looks complete.
    package var allowsUnframed: Bool {
        get { rare.allowsUnframed }
        set { rare.allowsUnframed = newValue }
    }
    /// Further URLs of the same content, this one included; nil: there is only this one.
    package var mirrors: Mirrors? {
        get { rare.mirrors }
        set { rare.mirrors = newValue }
    }

    /// The proxy of the request and of its redirects.
    package var proxy: Proxy {
        get { rare.proxy }
        set { rare.proxy = newValue }
    }

    /// What most sources do not have. Each pipeline keeps its source, so it takes one word there; nil if all of it has
    /// its default, so that equal sources are equal.
    @Rarely private var rare = Rare()

    private struct Rare: RareValues {
        var unixSocket: String?
        var clientCertificate: ClientCertificate?
        var certificateAuthority: String?
        var redirects = Redirects.any
        var allowsUnframed = false
        var mirrors: Mirrors?
        var proxy = Proxy.environment

    }

    /// How requests reach their hosts. A request with a secret over plain http, and one through a Unix socket, use no
    /// proxy in any case.
    package enum Proxy: Hashable, Sendable {
        /// As the environment of the service says: `http_proxy`, `https_proxy`, `no_proxy` (libcurl-env(3)).
        case environment
        /// Directly.
        case none
        /// Through the HTTP proxy at this URL, for all hosts.
        case url(String)
    }

    /// The redirects that are followed, within the rules that hold for all requests.
    package enum Redirects: String, CaseIterable, Hashable, Sendable {
        case any
        /// Only to the scheme, host and port of the URL.
        case sameOrigin = "same-origin"
        case none
    }

    /// The credentials whose files, in PEM, are a certificate and its private key.
    package struct ClientCertificate: Hashable, Sendable {
        /// The name of the credential with the certificate and those of its issuers that the origin needs.
        package var certificate: String
        /// The name of the credential with the private key; nil: the key is in the certificate's file.
        package var key: String?

        package init(certificate: String, key: String? = nil) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The method of the request.
    package enum Method: Hashable, Sendable {
        case get
        /// For APIs that take a query as the body. `contentType` is sent with a body that is not empty. Indirect,
        /// because it is rare.
        indirect case post(body: String, contentType: String)
    }

    /// The content type of a body unless configured.
    package static let defaultContentType = "application/json"

    package init(
        url: String, headers: [HTTPHeader] = [], host: String, method: Method = .get, unixSocket: String? = nil,
        clientCertificate: ClientCertificate? = nil, certificateAuthority: String? = nil
    ) {
        self.url = url
        self.headers = headers
        self.host = host
        self.method = method
        guard unixSocket != nil || clientCertificate != nil || certificateAuthority != nil else { return }
        rare = Rare(
            unixSocket: unixSocket, clientCertificate: clientCertificate, certificateAuthority: certificateAuthority)
    }

    /// Whether the request identifies its client, so that the answer may be confidential: a header field carries a
    /// secret, or there is a client certificate.
    package var isPrivate: Bool { clientCertificate != nil || headers.contains(where: \.isSecret) }

    /// Whether credentials may be sent: the URL is `https`, or its host is this machine. They are never sent
    /// unencrypted.
    package var mayCarryCredentials: Bool { isLocal || url.lowercased().hasPrefix("https://") }

    /// Whether the host is this machine, by its name or address (RFC 6761, 6.3; 127.0.0.0/8, ::1) or through a socket.
    package var isLocal: Bool {
        if unixSocket != nil { return true }
        var host = host
        return host.withUTF8 { bytes in
            bytes.elementsEqual("::1".utf8) || Self.isLocalName(bytes)
                || (bytes.starts(with: "127.".utf8)
                    && bytes.allSatisfy {
                        $0 == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    })
        }
    }

    /// Whether a host is `localhost` or ends in `.localhost`, in any case.
    private static func isLocalName(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        let name: StaticString = "localhost"
        guard host.count >= name.utf8CodeUnitCount else { return false }
        let end = host[(host.count - name.utf8CodeUnitCount)...]
        // The bit that makes an upper-case letter a lower-case one makes no other byte a letter of this name.
        guard name.withUTF8Buffer({ name in zip(end, name).allSatisfy { $0 | 0x20 == $1 } }) else { return false }
        return end.startIndex == 0 || host[end.startIndex - 1] == UInt8(ascii: ".")
    }
}

/// One header field of a request.
package struct HTTPHeader: Hashable, Sendable {
    /// The source of the field's value.
    package enum Value: Hashable, Sendable {
        case text(String)
        /// The service credential of this name, or the secret in the file at this absolute path.
        case credential(String, as: CredentialForm)
    }

    /// How a credential becomes a field's value.
    package enum CredentialForm: Hashable, Sendable {
        /// Unchanged, in a field that `headers` names.
        case field
        /// Unchanged, in the field of `source.credential`.
        case ownField
        /// A bearer token (RFC 6750, 2.1).
        case bearer
        /// `user:password` for the Basic scheme (RFC 7617).
        case basic
        /// The secret of a client that gets an access token with it; the token is sent as a bearer token.
        case oauth2(OAuth2Client)
        /// The secret of the client with this identifier, in the Basic scheme (RFC 6749, 2.3.1).
        case client(String)
    }

    package var name: String
    package var value: Value

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = .text(value)
    }

    package init(_ name: String, credential: String, as form: CredentialForm = .field) {
        self.name = name
        value = .credential(credential, as: form)
    }

    /// The credential of this name as a bearer token.
    package static func bearer(_ credential: String) -> HTTPHeader {
        HTTPHeader("Authorization", credential: credential, as: .bearer)
    }

    /// The credential of this name, `user:password`, for the Basic scheme.
    package static func basic(_ credential: String) -> HTTPHeader {
        HTTPHeader("Authorization", credential: credential, as: .basic)
    }

    /// The name of the credential in the field's value, or the path of its file; nil: the value is text.
    package var credential: String? {
        guard case .credential(let name, _) = value else { return nil }
        return name
    }

    /// Whether the value is a secret: a credential, or a value under a name that says so.
    package var isSecret: Bool { credential != nil || SecretName.matches(name) }
}
