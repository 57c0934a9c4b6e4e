package import FreshetModel

/// The certificate for which a TLS connection was refused. Its texts come from the server, without characters that act
/// on a terminal.
package struct ServerCertificate: Hashable, Sendable {
    /// The most names that are kept: a certificate may have thousands.
    package static let mostNames = 16
    /// The most bytes of a subject, an issuer or a name.
    package static let mostBytes = 256

    /// The place in the chain: 0 is the certificate of the server itself, 1 that of its issuer.
    package var depth: Int
    /// Such as `CN=example.com,O=Example` (RFC 2253); may be empty.
    package var subject: String
    package var issuer: String
    package var notBefore: WallTime?
    package var notAfter: WallTime?
    /// The host names and addresses for which it is valid.
    package var names: [String]

    package init(
        depth: Int, subject: String, issuer: String, notBefore: WallTime? = nil, notAfter: WallTime? = nil,
        names: [String] = []
    ) {
        self.depth = depth
        self.subject = subject
        self.issuer = issuer
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.names = names
    }
}
