import CCurl
import FreshetEventLoop
import FreshetPipelines
import Glibc

/// The files by which this machine proves to an origin who it is.
struct ClientIdentity: Hashable {
    /// The certificate and those that lead to its authority, in PEM, and which key goes with them.
    ///
    /// libcurl takes a connection, or a TLS session, for another request's if that has the same certificate, and does
    /// not look at the key (7.88; curl's pull request 21667 tells of it). Between the blocks of PEM any text may stand
    /// (RFC 7468, 2), so the key's path makes two proofs differ.
    let certificate: [UInt8]
    /// The path of a PEM file.
    let key: String

    /// Far more than any chain of certificates has.
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
        // The configuration refuses it; without TLS it would be left out without a word.
        guard source.url.lowercased().hasPrefix("https://") else {
            throw RunFailure(.local, "a client certificate needs an https URL, and \(source.host) has none")
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

    /// Small, and in memory where systemd keeps credentials: read where it is needed.
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

/// The authorities that libcurl was built to trust: setting an option to nothing would trust none.
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
    /// Sets what the origin is shown of this machine's own; nil: nothing.
    func setProof(_ proof: ClientIdentity?) {
        setBlob(CURLOPT_SSLCERT_BLOB, proof?.certificate)
        set(CURLOPT_SSLKEY, proof?.key)
        // A key with a passphrase is an error, and nobody is asked for it on a terminal.
        set(CURLOPT_KEYPASSWD, proof == nil ? nil : "")
    }

    /// Sets by whom the origin's certificate has to be issued: a PEM file that takes the place of the system's
    /// authorities; nil: those.
    func setAuthorities(_ authorities: String?) {
        let system = SystemAuthorities()
        set(CURLOPT_CAINFO, authorities ?? system.file)
        // Beside a file of its own libcurl would go on trusting the system's directory.
        set(CURLOPT_CAPATH, authorities == nil ? system.directory : nil)
    }
}
