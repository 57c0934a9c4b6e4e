import FreshetModel

/// A public key of minisign(1): an Ed25519 key, and the key number that signatures refer to.
///
/// https://jedisct1.github.io/minisign/ describes the formats of keys and signatures.
package struct MinisignKey: Hashable, Sendable, CustomStringConvertible {
    /// Why a text is not a key: the rest of a sentence whose subject is the text.
    package struct ValidationError: Error, Hashable {
        package var message: String
    }

    /// 8 random bytes, chosen when the key was made.
    package let number: [UInt8]
    /// 32 bytes (RFC 8032, 5.1.5).
    package let ed25519: [UInt8]

    /// Reads the Base64 line that minisign(1) prints.
    package init(_ text: some StringProtocol) throws(ValidationError) {
        guard let bytes = Base64.bytes(of: text) else {
            throw ValidationError(message: "is not a line of Base64 such as RWQf6LRC…")
        }
        guard bytes.starts(with: MinisignSignature.Kind.whole.rawValue.utf8), bytes.count == 42 else {
            // The line of a secret key begins differently and is longer.
            throw ValidationError(
                message: bytes.count > 100
                    ? "is a secret key; only the signer may have it"
                    : "is not a public key of minisign, whose line has 56 characters and begins with RW")
        }
        number = Array(bytes[2..<10])
        ed25519 = Array(bytes[10...])
    }

    /// Reads a key file of minisign(1): a comment line, which may be missing, then the key.
    package init(file bytes: [UInt8]) throws(ValidationError) {
        let lines = MinisignSignature.lines(of: bytes)
        guard let line = lines.first(where: { !$0.isEmpty && !$0.starts(with: MinisignSignature.untrusted.utf8) })
        else {
            throw ValidationError(message: "contains no key")
        }
        try self.init(String(decoding: line, as: UTF8.self))
    }

    /// The longest key file, in bytes.
    package static let fileLimit = 4096

    /// The Base64 line of the key. A public key is not secret.
    package var description: String {
        Base64.text(of: Array(MinisignSignature.Kind.whole.rawValue.utf8) + number + ed25519)
    }

    /// The key number as minisign(1) prints it.
    package var name: String { Self.name(of: number) }

    static func name(of number: [UInt8]) -> String {
        number.reversed().map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.count < 2 ? "0\(digits)" : digits
        }.joined()
    }
}

/// A signature file of minisign(1). It is parsed, not verified.
package struct MinisignSignature: Hashable, Sendable {
    /// The size of a BLAKE2b-512 digest in bytes.
    static let digestBytes = 64

    /// The message that was signed.
    package enum Kind: String, Hashable, Sendable {
        /// The content itself, as old versions of minisign(1) sign it.
        case whole = "Ed"
        /// The content's BLAKE2b digest of 64 bytes (RFC 7693).
        case digest = "ED"
    }

    /// Why a file is not a signature: the rest of a sentence whose subject is the file.
    package struct ValidationError: Error, Hashable {
        package var message: String
    }

    package let kind: Kind
    /// The key number.
    package let number: [UInt8]
    /// The signature of the message that `kind` names: 64 bytes (RFC 8032, 5.1.6).
    package let signature: [UInt8]
    /// One line of text, covered by `globalSignature`.
    package let trustedComment: [UInt8]
    /// The signature of ``globalMessage``: 64 bytes.
    package let globalSignature: [UInt8]

    /// The message of `globalSignature`: the signature, then the trusted comment.
    package var globalMessage: [UInt8] { signature + trustedComment }

    static let untrusted = "untrusted comment:"
    private static let trusted = "trusted comment: "

    package init(_ file: [UInt8]) throws(ValidationError) {
        let lines = Self.lines(of: file)
        guard lines.count >= 4, lines[0].starts(with: Self.untrusted.utf8), lines[2].starts(with: Self.trusted.utf8)
        else {
            throw ValidationError(
                message: "is not a signature of minisign, which has four lines, the first and the third with comments")
        }
        guard let bytes = Base64.bytes(of: Array(lines[1])), bytes.count == 74,
            let global = Base64.bytes(of: Array(lines[3])), global.count == 64
        else { throw ValidationError(message: "has a signature that is cut off or damaged") }
        guard let kind = Kind(rawValue: String(decoding: bytes[..<2], as: UTF8.self)) else {
            throw ValidationError(message: "has a signature of an unknown kind")
        }
        self.kind = kind
        number = Array(bytes[2..<10])
        signature = Array(bytes[10...])
        trustedComment = Array(lines[2].dropFirst(Self.trusted.utf8.count))
        globalSignature = global
    }

    /// The lines, which may end with LF or CRLF.
    static func lines(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
    }
}
