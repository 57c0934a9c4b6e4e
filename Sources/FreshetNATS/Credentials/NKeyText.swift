import CCrypto

/// The text of keys: Base32 (RFC 4648, 6, without padding) of a prefix, 32 bytes, and a CRC-16 (the module `nkeys` of
/// NATS).
enum NKeyText {
    /// The prefix of a seed: its five bits encode as `S`.
    private static let seedPrefix: UInt8 = 18 << 3
    /// The prefix of a user: its five bits encode as `U`.
    private static let userPrefix: UInt8 = 20 << 3
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    /// Two bytes of prefixes, 32 of the seed, two of the checksum.
    private static let seedBytes = 36
    /// One byte of prefix, 32 of the key, two of the checksum.
    private static let publicKeyBytes = 35

    /// Decodes the seed of a user. All copies are overwritten.
    ///
    /// - Parameter seed: receives the 32 bytes.
    static func decode(
        _ text: UnsafeRawBufferPointer, to seed: UnsafeMutableRawBufferPointer
    ) throws(NATSError) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: seedBytes, alignment: 16)
        defer {
            OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            bytes.deallocate()
        }
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        guard let first = text.firstIndex(where: { !isBlank($0) }), let last = text.lastIndex(where: { !isBlank($0) })
        else { throw .invalidSeed("it is empty") }
        let word = text[first...last]
        guard word.count == (seedBytes * 8 + 4) / 5 else {
            throw .invalidSeed("it has \(word.count) characters instead of \((seedBytes * 8 + 4) / 5)")
        }
        var (bits, count, position): (UInt32, UInt32, Int) = (0, 0, 0)
        for character in word {
            guard let digit = digit(character) else { throw .invalidSeed("it has a character that is not Base32") }
            bits = bits << 5 | digit
            count += 5
            if count >= 8, position < seedBytes {
                count -= 8
                bytes[position] = UInt8(truncatingIfNeeded: bits >> count)
                position += 1
            }
        }
        let checksum = UInt16(bytes[34]) | UInt16(bytes[35]) << 8
        // The last character has bits that belong to no byte.
        guard checksum == crc16(bytes[..<34]), bits & (1 << count - 1) == 0 else {
            throw .invalidSeed("its checksum is wrong")
        }
        let kind = (bytes[0] & 7) << 5 | (bytes[1] & 0xF8) >> 3
        guard bytes[0] & 0xF8 == seedPrefix, kind == userPrefix else {
            throw .invalidSeed("it is another kind of key; the seed of a user begins with SU")
        }
        seed.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: bytes[2..<34]))
    }

    /// The 32 bytes of a user's public key.
    static func publicKey(_ text: String) throws(NATSError) -> [UInt8] {
        let word = Array(text.utf8)
        guard word.count == (publicKeyBytes * 8 + 4) / 5 else {
            throw .invalidPublicKey("it has \(word.count) characters instead of \((publicKeyBytes * 8 + 4) / 5)")
        }
        var bytes: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for character in word {
            guard let digit = digit(character) else {
                throw .invalidPublicKey("it has a character that is not Base32")
            }
            bits = bits << 5 | digit
            count += 5
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        // 56 characters are exactly 35 bytes.
        guard UInt16(bytes[33]) | UInt16(bytes[34]) << 8 == crc16(bytes[..<33]) else {
            throw .invalidPublicKey("its checksum is wrong")
        }
        guard bytes[0] == userPrefix else {
            throw .invalidPublicKey("it is another kind of key; that of a user begins with U")
        }
        return Array(bytes[1..<33])
    }

    /// The text of a user's public key.
    static func encode(_ publicKey: [UInt8]) -> String { base32([userPrefix] + publicKey) }

    /// The text of a user's seed.
    static func encode(seed: [UInt8]) -> String {
        // The five bits of `S`, then the eight bits of the kind.
        base32([seedPrefix | userPrefix >> 5, userPrefix << 3] + seed)
    }

    /// The bytes with their checksum.
    private static func base32(_ content: [UInt8]) -> String {
        var bytes = content
        let checksum = bytes.withUnsafeBytes { crc16($0[...]) }
        bytes += [UInt8(truncatingIfNeeded: checksum), UInt8(checksum >> 8)]
        var text: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 5 {
                count -= 5
                text.append(alphabet[Int(bits >> count & 31)])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << (5 - count) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Base64 with the alphabet for URLs, without padding (RFC 4648, 5): the text of a signature.
    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(bits >> count & 63)])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << (6 - count) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    private static func digit(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "2")...UInt8(ascii: "7"): UInt32(character - UInt8(ascii: "2")) + 26
        default: nil
        }
    }

    /// CRC-16/XMODEM: polynomial 0x1021, initial value 0.
    private static func crc16(_ bytes: some Sequence<UInt8>) -> UInt16 {
        bytes.reduce(0) { crc, byte in
            (0..<8).reduce(crc ^ UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
        }
    }
}
