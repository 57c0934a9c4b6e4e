import CCrypto
import FreshetPipelines

/// User and password for the Basic scheme (RFC 7617, 2).
package enum BasicCredentials {
    /// The credentials after `Basic`: the pair in Base64.
    ///
    /// - Parameter secret: `user:password` in ASCII; the password begins after the first colon.
    /// - Returns: nil if the secret has no colon.
    package static func encoded(_ secret: String) -> String? {
        secret.utf8.contains(UInt8(ascii: ":")) ? base64(secret) : nil
    }

    /// A client of OAuth 2.0: its identifier and its secret, each form-encoded first (RFC 6749, 2.3.1).
    package static func encoded(client identifier: String, _ secret: String) -> String {
        base64("\(OAuth2Client.formEncoded(identifier)):\(OAuth2Client.formEncoded(secret))") ?? ""
    }

    /// Nil if the text has more than 2 GiB.
    private static func base64(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard let count = Int32(exactly: bytes.count) else { return nil }
        // Four characters for each group of up to three bytes, and a NUL (EVP_EncodeBlock(3)).
        return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4 + 1) { text in
            Int(EVP_EncodeBlock(text.baseAddress, bytes, count))
        }
    }

    /// The password alone; nil if there is no colon.
    package static func password(_ secret: String) -> String? {
        secret.firstIndex(of: ":").map { String(secret[secret.index(after: $0)...]) }
    }
}
