import CCrypto
import FreshetEventLoop
import Glibc

/// The secret of a user, an NKEY seed (`SU…`). It signs the nonce of a server; the seed itself is never sent.
///
/// The memory of the seed is overwritten when the object is released. No description or error contains the seed.
///
/// `@unchecked Sendable`: the memory is written in the initializer only, before the object is shared; afterwards it is
/// read, until the last owner is gone.
public final class NKeySeed: @unchecked Sendable {
    /// The most bytes of a file with a seed: the seed, and blanks around it.
    static let fileLimit = 1_024
    private static let length = 32

    /// The public key, `U…`: the name of the user in the server's configuration. It is not secret.
    public let publicKey: String
    private let seed: UnsafeMutableRawBufferPointer

    /// Reads a seed.
    ///
    /// - Parameter text: the seed as text, such as the content of a credential; blanks around it are ignored. The
    ///   caller overwrites its own copy.
    /// - Throws: ``NATSError/invalidSeed(_:)``.
    public init(_ text: UnsafeRawBufferPointer) throws(NATSError) {
        let seed = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.length, alignment: 16)
        var isDone = false
        defer {
            if !isDone {
                OPENSSL_cleanse(seed.baseAddress, seed.count)
                seed.deallocate()
            }
        }
        try NKeyText.decode(text, to: seed)
        publicKey = NKeyText.encode(try Self.publicKey(of: seed))
        self.seed = seed
        isDone = true
    }

    /// Reads a seed from a file, such as a credential of systemd. Blocks, but such a file is in memory.
    ///
    /// - Throws: ``NATSError/system(_:)`` or ``NATSError/invalidSeed(_:)``.
    public convenience init(contentsOf path: String) throws(NATSError) {
        let text = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.fileLimit + 1, alignment: 16)
        defer {
            OPENSSL_cleanse(text.baseAddress, text.count)
            text.deallocate()
        }
        // Non-blocking, because opening a FIFO would wait for its writer.
        guard case let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), raw >= 0 else {
            throw .system(SystemCallError("open", errno: errno, subject: path))
        }
        let file = OwnedDescriptor(raw)
        let count = read(file.rawValue, text.baseAddress, text.count)
        guard count >= 0 else { throw .system(SystemCallError("read", errno: errno, subject: path)) }
        guard count <= Self.fileLimit else { throw .invalidSeed("the file is too long") }
        try self.init(UnsafeRawBufferPointer(rebasing: text[..<count]))
    }

    /// The text of a new seed, from the system's random numbers.
    public static func makeText() -> String {
        var generator = SystemRandomNumberGenerator()
        return NKeyText.encode(seed: (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    deinit {
        OPENSSL_cleanse(seed.baseAddress, seed.count)
        seed.deallocate()
    }

    /// The most characters of a server's nonce; nats-server's has 15.
    private static let longestNonce = 64

    /// The signature of a server's nonce; nil: libcrypto does not provide Ed25519, or the text is not a nonce.
    ///
    /// A nonce is Base64. Whatever else a key signs has other characters: a server could otherwise pass it as a nonce,
    /// and would get a valid signature of it.
    func signature(ofNonce nonce: String) -> [UInt8]? {
        guard (1...Self.longestNonce).contains(nonce.utf8.count), nonce.utf8.allSatisfy(Self.isNonce) else {
            return nil
        }
        return rawSignature(of: Array(nonce.utf8))
    }

    private static func isNonce(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "+/-_=".utf8.contains(character)
        }
    }

    /// The Ed25519 signature (RFC 8032) of a statement, which ``NKeyPublicKey/isSigned(_:_:as:)`` verifies.
    ///
    /// - Parameters:
    ///   - statement: any bytes.
    ///   - purpose: what the statement is, such as `freshet record 1`: a signature is valid for one purpose only. With
    ///     the line end after it, no statement can be the nonce of a server.
    /// - Returns: 64 bytes; nil: libcrypto does not provide Ed25519.
    public func signature(of statement: [UInt8], as purpose: StaticString) -> [UInt8]? {
        rawSignature(of: NKeyPublicKey.message(statement, as: purpose))
    }

    /// The signature of bytes as they are; only for what cannot have two meanings.
    func rawSignature(of message: [UInt8]) -> [UInt8]? {
        // Errors stay in the thread's queue, where later users of the thread would take them for their own errors.
        defer { ERR_clear_error() }
        guard let key = Self.privateKey(of: seed) else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 64)
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == signature.count
        else { return nil }
        return signature
    }

    private static func privateKey(of seed: UnsafeMutableRawBufferPointer) -> OpaquePointer? {
        EVP_PKEY_new_raw_private_key(
            EVP_PKEY_ED25519, nil, seed.baseAddress?.assumingMemoryBound(to: UInt8.self), seed.count)
    }

    private static func publicKey(of seed: UnsafeMutableRawBufferPointer) throws(NATSError) -> [UInt8] {
        defer { ERR_clear_error() }
        let unavailable = NATSError.invalidSeed("libcrypto does not provide Ed25519; the system may forbid it")
        guard let key = privateKey(of: seed) else { throw unavailable }
        defer { EVP_PKEY_free(key) }
        var bytes = [UInt8](repeating: 0, count: length)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else { throw unavailable }
        return bytes
    }
}
