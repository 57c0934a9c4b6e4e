import CCrypto

/// The SHA-256 of a generation's content.
package struct ContentDigest: Hashable, Sendable, CustomStringConvertible {
    /// Length in bytes.
    package static let byteCount = 32

    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// From 32 bytes; nil for any other number of them.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var parsed: [UInt64] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            parsed.append(rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
            rest = rest.dropFirst(8)
        }
        words = (parsed[0], parsed[1], parsed[2], parsed[3])
    }

    /// From 64 hexadecimal digits in lower case; nil for anything else.
    package init?(hexadecimal: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        var high: UInt8?
        for character in hexadecimal.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard high == nil else { return nil }
        self.init(bytes: bytes)
    }

    /// Computes the digest of content.
    package init(of content: [UInt8]) throws(CacheError) {
        var hasher = try SHA256Hasher()
        content.withUnsafeBytes { hasher.update($0) }
        self = try hasher.finalize()
    }

    /// The 32 bytes.
    package var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(Self.byteCount)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return result
    }

    /// 64 hexadecimal digits in lower case.
    package var description: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(2 * Self.byteCount)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        // The words are uniformly distributed already: one word is enough for a hash.
        hasher.combine(words.0)
    }
}

/// Computes SHA-256 piece by piece.
///
/// `@unchecked Sendable` is safe: the value cannot be copied, so the context has one owner at a time, and libcrypto's
/// contexts are not bound to a thread.
struct SHA256Hasher: ~Copyable, @unchecked Sendable {
    private let context: OpaquePointer
    private var isGood = true

    init() throws(CacheError) {
        guard let made = EVP_MD_CTX_new() else { throw .digestUnavailable }
        // Fails only if the system's crypto policy does not allow SHA-256 at all.
        guard EVP_DigestInit_ex(made, EVP_sha256(), nil) == 1 else {
            EVP_MD_CTX_free(made)
            throw .digestUnavailable
        }
        context = made
    }

    deinit { EVP_MD_CTX_free(context) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1 { isGood = false }
    }

    /// The digest of the bytes so far; more bytes can follow.
    func digest() throws(CacheError) -> ContentDigest {
        var copy = try SHA256Hasher()
        guard isGood, EVP_MD_CTX_copy_ex(copy.context, context) == 1 else { throw .digestUnavailable }
        copy.isGood = isGood
        return try copy.finalize()
    }

    consuming func finalize() throws(CacheError) -> ContentDigest {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard isGood, EVP_DigestFinal_ex(context, &bytes, &count) == 1,
            let digest = ContentDigest(bytes: bytes.prefix(Int(count)))
        else { throw .digestUnavailable }
        return digest
    }
}
