/// A request for data over HTTP.
package struct HTTPSource: Hashable, Sendable {
    /// The absolute URL, `http` or `https`, checked when the configuration was read.
    package var url: String
    /// Request headers in the order of the configuration. They go to the URL's own origin only, never along with a
    /// redirect to another one.
    package var headers: [HTTPHeader]
    /// The host of the URL as written, without port and without the brackets of an IPv6 address.
    package var host: String
    package var method: Method
    /// The absolute path of a socket of this machine that the request goes through, whatever the URL's host is; nil:
    /// the host is connected to.
    package var unixSocket: String?
    /// By what this machine proves to the URL's own origin who it is; nil: it does not.
    package var clientCertificate: ClientCertificate?
    /// The absolute path of a file of PEM certificates; the URL's own origin is checked against these alone. nil: the
    /// system's authorities.
    package var certificateAuthority: String?
    /// Where the URL's origin may send the request.
    package var redirects = Redirects.any
    /// Whether a body is taken whose end only the end of its connection tells (RFC 9112, 6.3). One that was cut then looks
    /// whole.
    package var allowsUnframed = false

    /// The redirects that are followed, within the rules that hold for all.
    package enum Redirects: String, CaseIterable, Hashable, Sendable {
        case any
        /// To the scheme, host and port of the URL alone.
        case sameOrigin = "same-origin"
        case none
    }

    /// Credentials whose files, in PEM, are a certificate and its private key.
    package struct ClientCertificate: Hashable, Sendable {
        /// The name of the credential that holds the certificate, and those of its issuers that the origin needs.
        package var certificate: String
        /// The name of the credential that holds the key; nil: it stands in the certificate's file.
        package var key: String?

        package init(certificate: String, key: String? = nil) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// How the URL is asked.
    package enum Method: Hashable, Sendable {
        case get
        /// For APIs that take their question as a body. `contentType` goes along with a body that is not empty.
        case post(body: String, contentType: String)
    }

    /// What a body is unless the configuration says otherwise.
    package static let defaultContentType = "application/json"

    package init(
        url: String, headers: [HTTPHeader] = [], host: String, method: Method = .get, unixSocket: String? = nil,
        clientCertificate: ClientCertificate? = nil, certificateAuthority: String? = nil
    ) {
        self.url = url
        self.headers = headers
        self.host = host
        self.method = method
        self.unixSocket = unixSocket
        self.clientCertificate = clientCertificate
        self.certificateAuthority = certificateAuthority
    }

    /// The origin knows who asks, so that what it answers may not be for everybody: a header carries a secret, or there is
    /// a client certificate.
    package var isPrivate: Bool { clientCertificate != nil || headers.contains(where: \.isSecret) }

    /// Credentials do not travel in the clear: the URL is `https`, or its host is this machine.
    package var mayCarryCredentials: Bool { isLocal || url.lowercased().hasPrefix("https://") }

    /// The host is this machine by its name or address (RFC 6761, 6.3; 127.0.0.0/8, ::1), or asked through a socket.
    package var isLocal: Bool {
        if unixSocket != nil { return true }
        let host = host.lowercased()
        return host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }
}

/// One header field of a request.
package struct HTTPHeader: Hashable, Sendable {
    /// Where its value comes from.
    package enum Value: Hashable, Sendable {
        case text(String)
        /// The secret of this name that the service was started with.
        case credential(String, as: CredentialForm)
    }

    /// How a secret becomes a field's value.
    package enum CredentialForm: Hashable, Sendable {
        /// As it is, in a field that `headers` names.
        case field
        /// As it is, in the field of `source.credential`.
        case ownField
        /// A bearer token (RFC 6750, 2.1).
        case bearer
        /// `user:password` for the Basic scheme (RFC 7617).
        case basic
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

    /// A secret of this name as a bearer token.
    package static func bearer(_ credential: String) -> HTTPHeader {
        HTTPHeader("Authorization", credential: credential, as: .bearer)
    }

    /// A secret of this name, `user:password`, for the Basic scheme.
    package static func basic(_ credential: String) -> HTTPHeader {
        HTTPHeader("Authorization", credential: credential, as: .basic)
    }

    /// The credential whose secret it carries.
    package var credential: String? {
        guard case .credential(let name, _) = value else { return nil }
        return name
    }

    /// Its value is a secret: a credential's, or by its name.
    package var isSecret: Bool { credential != nil || SecretName.matches(name) }
}
