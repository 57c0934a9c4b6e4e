import CCrypto
package import FreshetModel

extension ContentDigest {
    /// Computes the digest of content.
    package init(of content: [UInt8]) throws(CacheError) {
        var hasher = try SHA256Hasher()
        content.withUnsafeBytes { hasher.update($0) }
        self = try hasher.finalize()
    }
}

/// Computes SHA-256 piece by piece.
///
/// `@unchecked Sendable` is safe: the value cannot be copied, so the context has one owner at a time, and libcrypto's
/// contexts are not bound to a thread.
package struct SHA256Hasher: ~Copyable, @unchecked Sendable {
    private let context: OpaquePointer
    private var isGood = true

    package init() throws(CacheError) {
        guard let made = EVP_MD_CTX_new() else { throw .digestUnavailable }
        // Fails only if the system's crypto policy does not allow SHA-256 at all.
        guard EVP_DigestInit_ex(made, EVP_sha256(), nil) == 1 else {
            EVP_MD_CTX_free(made)
            throw .digestUnavailable
        }
        context = made
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1 { isGood = false }
    }

    /// The digest of the bytes so far; more bytes can follow.
    func digest() throws(CacheError) -> ContentDigest {
        var copy = try SHA256Hasher()
        guard isGood, EVP_MD_CTX_copy_ex(copy.context, context) == 1 else { throw .digestUnavailable }
        copy.isGood = isGood
        return try copy.finalize()
    }

    package consuming func finalize() throws(CacheError) -> ContentDigest {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard isGood, EVP_DigestFinal_ex(context, &bytes, &count) == 1,
            let digest = ContentDigest(bytes: Array(bytes.prefix(Int(count))))
        else { throw .digestUnavailable }
        return digest
    }
}
