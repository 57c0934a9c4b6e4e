import CCurl
import FreshetPipelines

/// The files by which this machine proves to an origin who it is.
struct ClientProof: Hashable {
    /// Paths of PEM files.
    let certificate: String
    let key: String

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
        self.certificate = try path(certificate.certificate)
        key = try path(certificate.key ?? certificate.certificate)
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
    func setProof(_ proof: ClientProof?) {
        set(CURLOPT_SSLCERT, proof?.certificate)
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
