import FreshetControl

/// Describes a certificate for which a TLS connection was refused: whose it is, when it is valid, and for which names.
struct CertificateText {
    let certificate: CertificateStatus
    let times: Times

    /// Such as `CN=example.com, issued by CN=Example CA; expired 3 days ago (Sat …); for example.com`.
    var text: String { [whose, validity, names].compactMap(\.self).joined(separator: "; ") }

    private var whose: String {
        let subject = certificate.subject.isEmpty ? "a certificate without a subject" : certificate.subject
        let issuer =
            certificate.subject == certificate.issuer
            ? "issued by itself"
            : "issued by \(certificate.issuer.isEmpty ? "an issuer without a name" : certificate.issuer)"
        let place = certificate.depth > 0 ? "in the chain of the server's certificate: " : ""
        return "\(place)\(subject), \(issuer)"
    }

    private var validity: String {
        if let end = certificate.notAfter, end < times.now {
            return "expired \(times.past(end)) (\(times.absolute(end)))"
        }
        if let begin = certificate.notBefore, begin > times.now {
            return "valid only from \(times.absolute(begin)) (\(times.relative(begin)))"
        }
        return certificate.notAfter.map { "valid until \(times.absolute($0))" } ?? "its dates cannot be read"
    }

    /// Nil for the certificate of an issuer, which has no names of hosts.
    private var names: String? {
        guard certificate.depth == 0 else { return nil }
        return certificate.names.isEmpty ? "for no host name" : "for \(certificate.names.joined(separator: ", "))"
    }
}
