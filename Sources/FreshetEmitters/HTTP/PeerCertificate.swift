import CCrypto
import CCurl
import FreshetModel
import FreshetPipelines

/// Remembers the certificate that OpenSSL verified last for a request, so that the failure of a handshake can name it.
///
/// libcurl does not report the certificates of a failed verification (`CURLINFO_CERTINFO`). OpenSSL calls back for each
/// certificate of the chain, and with the first one that it rejects the verification ends. The callback changes nothing:
/// it returns OpenSSL's own result.
///
/// Not `Sendable`: OpenSSL calls on the thread that drives libcurl. A TLS context, which libcurl keeps for a connection
/// and its later requests, retains the object.
final class PeerCertificate {
    /// libcrypto's certificate, of which this object has a reference; nil: none was verified.
    private var certificate: OpaquePointer?
    private var depth = 0

    deinit { X509_free(certificate) }

    /// The place of the object in a TLS context.
    private static let place = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil) {
        _, object, _, _, _, _ in
        if let object { Unmanaged<PeerCertificate>.fromOpaque(object).release() }
    }

    /// Lets the request of a handle record its certificates here. The handle is freed before this object.
    func watch(_ easy: UnsafeMutableRawPointer) {
        freshet_curl_set_tls_function(easy, Self.prepare, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Prepares the TLS context of a connection.
    private static let prepare:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> CURLcode = { easy, context, object in
            guard let context, let object, place >= 0 else { return freshet_tls_limit_messages(easy, context, nil) }
            let retained = Unmanaged<PeerCertificate>.fromOpaque(object).retain()
            let session = OpaquePointer(context)
            if SSL_CTX_set_ex_data(session, place, retained.toOpaque()) == 1 {
                SSL_CTX_set_verify(session, SSL_CTX_get_verify_mode(session), verified)
            } else {
                retained.release()
            }
            return freshet_tls_limit_messages(easy, context, nil)
        }

    /// OpenSSL has verified a certificate of a chain.
    private static let verified: @convention(c) (Int32, OpaquePointer?) -> Int32 = { result, store in
        guard let store else { return result }
        let depth = Int(X509_STORE_CTX_get_error_depth(store))
        // Without an error, only the server's own certificate matters: its name may be another one.
        guard result == 0 || depth == 0, let certificate = X509_STORE_CTX_get_current_cert(store),
            let session = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let context = SSL_get_SSL_CTX(OpaquePointer(session)), let object = SSL_CTX_get_ex_data(context, place)
        else { return result }
        Unmanaged<PeerCertificate>.fromOpaque(object).takeUnretainedValue().record(certificate, depth)
        return result
    }

    private func record(_ certificate: OpaquePointer, _ depth: Int) {
        X509_up_ref(certificate)
        X509_free(self.certificate)
        (self.certificate, self.depth) = (certificate, depth)
    }

    /// The certificate that was verified last; nil: there was none.
    var facts: ServerCertificate? {
        guard let certificate else { return nil }
        // Errors about a malformed extension stay in the thread's queue, where later users of the thread would take them
        // for their own errors.
        defer { ERR_clear_error() }
        let hosts = Self.text { freshet_x509_hosts(certificate, $0, $1) }.split(separator: "\n")
        return ServerCertificate(
            depth: depth,
            subject: Self.harmless(Self.text { freshet_x509_name(X509_get_subject_name(certificate), $0, $1) }),
            issuer: Self.harmless(Self.text { freshet_x509_name(X509_get_issuer_name(certificate), $0, $1) }),
            notBefore: Self.time(X509_get0_notBefore(certificate)),
            notAfter: Self.time(X509_get0_notAfter(certificate)),
            names: hosts.prefix(ServerCertificate.mostNames).map { Self.harmless(String($0)) })
    }

    /// The most bytes that are read of a certificate's names.
    private static let bufferSize = 4_096

    private static func text(_ write: (UnsafeMutablePointer<CChar>?, Int32) -> Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: bufferSize) { buffer in
            let count = max(0, min(bufferSize, Int(write(buffer.baseAddress, Int32(bufferSize)))))
            return String(
                decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]), as: UTF8.self)
        }
    }

    private static func harmless(_ text: String) -> String {
        let escaped = Text.escaped(text)
        guard escaped.utf8.count > ServerCertificate.mostBytes else { return escaped }
        return String(decoding: escaped.utf8.prefix(ServerCertificate.mostBytes), as: UTF8.self) + "…"
    }

    private static func time(_ time: UnsafePointer<ASN1_TIME>?) -> WallTime? {
        let seconds = freshet_asn1_seconds(time)
        return seconds == 0 ? nil : WallTime(seconds: seconds)
    }
}
