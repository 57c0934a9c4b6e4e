import CCurl
import FreshetEventLoop
import FreshetPipelines
import Glibc

/// The client certificate and key with which this machine authenticates to an origin.
struct ClientIdentity: Hashable {
    /// The certificate and its chain, in PEM, followed by a line of text with the path of the key.
    ///
    /// libcurl reuses a connection or a TLS session for a request with the same certificate, and does not compare the
    /// key (7.88; curl's pull request 21667). Text between PEM blocks is allowed (RFC 7468, 2), so the key's path makes
    /// two identities differ.
    let certificate: [UInt8]
    /// The path of the key, a PEM file.
    let key: String

    /// The most bytes of a certificate file: far more than any certificate chain has.
    static let certificateLimit = 1 << 20

    /// - Parameter files: the paths of credentials by their names.
    init(
        _ certificate: HTTPSource.ClientCertificate, in files: [String: String], for source: HTTPSource
    ) throws(RunFailure) {
        func path(_ name: String) throws(RunFailure) -> String {
            guard let path = files[name] else {
                throw RunFailure(.local, "the service was started without the credential '\(name)'")
            }
            return path
        }
        // The configuration does not allow this; without TLS, libcurl would silently ignore the certificate.
        guard source.url.lowercased().hasPrefix("https://") else {
            throw RunFailure(.local, "a client certificate needs an https URL; the URL at \(source.host) is not https")
        }
        key = try path(certificate.key ?? certificate.certificate)
        let file = try path(certificate.certificate)
        do throws(SystemCallError) {
            self.certificate = try Self.content(of: file) + Array("\n# with the key of \(key)\n".utf8)
        } catch {
            throw RunFailure(
                .local, "the credential '\(certificate.certificate)' cannot be read: \(error.reason)")
        }
    }

    /// Reads a credential on the calling thread: it is small, and systemd keeps credentials in memory.
    private static func content(of path: String) throws(SystemCallError) -> [UInt8] {
        let file = try OwnedDescriptor(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), of: "open", subject: path)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < certificateLimit {
            let count = read(file.rawValue, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw SystemCallError("read", errno: errno, subject: path) }
            guard count > 0 else { return bytes }
            bytes += piece[..<count]
        }
        throw SystemCallError("read", errno: EFBIG, subject: path)
    }
}

/// The certificate authorities that libcurl trusts by default. Setting the options to nil would trust no authority.
struct SystemAuthorities {
    let file: String?
    let directory: String?

    init() {
        let version = curl_version_info(CURLVERSION_SEVENTH)?.pointee
        file = version?.cainfo.map { String(cString: $0) }
        directory = version?.capath.map { String(cString: $0) }
    }
}

extension EasyHandle {
    /// Sets the client certificate and key; nil: none are sent.
    func setProof(_ proof: ClientIdentity?) {
        setBlob(CURLOPT_SSLCERT_BLOB, proof?.certificate)
        set(CURLOPT_SSLKEY, proof?.key)
        // A key with a passphrase is an error: OpenSSL must not prompt for the passphrase on a terminal.
        set(CURLOPT_KEYPASSWD, proof == nil ? nil : "")
    }

    /// Sets the authorities for the origin's certificate: a PEM file that replaces the system's authorities; nil for
    /// the system's authorities.
    func setAuthorities(_ authorities: String?) {
        let system = SystemAuthorities()
        set(CURLOPT_CAINFO, authorities ?? system.file)
        // Otherwise libcurl would also trust the system's directory besides the file.
        set(CURLOPT_CAPATH, authorities == nil ? system.directory : nil)
    }
}
