import CCrypto

/// User and password for the Basic scheme (RFC 7617, 2).
package enum BasicCredentials {
    /// The credentials after `Basic`: the pair in Base64.
    ///
    /// - Parameter secret: `user:password` in ASCII; the password begins after the first colon.
    /// - Returns: nil if the secret has no colon.
    package static func encoded(_ secret: String) -> String? {
        let bytes = Array(secret.utf8)
        guard bytes.contains(UInt8(ascii: ":")), let count = Int32(exactly: bytes.count) else { return nil }
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
