import CCrypto

/// The public NKEY of a user, `U…`: it verifies what the owner of the seed has signed.
public struct NKeyPublicKey: Hashable, Sendable, CustomStringConvertible {
    /// The text of the key.
    public let description: String
    private let bytes: [UInt8]

    /// Reads a key.
    ///
    /// - Parameter text: `U` and 55 further characters of Base32.
    /// - Throws: ``NATSError/invalidPublicKey(_:)``.
    public init(_ text: String) throws(NATSError) {
        bytes = try NKeyText.publicKey(text)
        description = text
    }

    /// Whether a signature of a statement is valid; also false if libcrypto does not provide Ed25519. Costs about 0.1
    /// ms for a short statement.
    ///
    /// - Parameters:
    ///   - statement: the bytes that were signed.
    ///   - signature: 64 bytes; any other number is not valid.
    ///   - purpose: see ``NKeySeed/signature(of:as:)``.
    public func isSigned(_ statement: [UInt8], _ signature: [UInt8], as purpose: StaticString) -> Bool {
        // Errors stay in the thread's queue, where later users of the thread would take them for their own errors.
        defer { ERR_clear_error() }
        guard signature.count == 64, let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
        else { return false }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let message = Self.message(statement, as: purpose)
        return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// The bytes that are signed.
    static func message(_ statement: [UInt8], as purpose: StaticString) -> [UInt8] {
        Array("\(purpose)\n".utf8) + statement
    }
}
