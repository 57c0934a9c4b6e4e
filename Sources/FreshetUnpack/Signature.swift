/// Finds the format of an input by its first bytes.
enum Signature {
    private static let beginnings: [(bytes: [UInt8], format: UnpackRequest.Format)] = [
        ([0x1F, 0x8B], .gzip), ([0x28, 0xB5, 0x2F, 0xFD], .zstd), ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00], .xz),
        ([0x42, 0x5A, 0x68], .bzip2), ([0x50, 0x4B, 0x03, 0x04], .zip), ([0x50, 0x4B, 0x05, 0x06], .zip),
    ]

    /// The format of an input that begins with these bytes; nil: another format.
    static func format(of beginning: [UInt8]) -> UnpackRequest.Format? {
        if let found = beginnings.first(where: { beginning.starts(with: $0.bytes) }) { return found.format }
        // POSIX and GNU archives have this word in the first header (tar(5)).
        return beginning.dropFirst(257).starts(with: "ustar".utf8) ? .tar : nil
    }

    /// The error for an input of another format than the configured one.
    static func mismatch(_ format: UnpackRequest.Format, _ beginning: [UInt8]) -> UnpackError {
        let start = "the answer is not \(format.rawValue): it begins with \(text(of: beginning.prefix(8)))"
        guard let other = self.format(of: beginning), other != format else {
            return UnpackError("\(start); if the answer is unpacked already, remove 'unpack'")
        }
        return UnpackError(
            "\(start), as \(other.rawValue) does; set unpack: \(other.rawValue)\(other.isArchive ? ":PATH" : "")")
    }

    /// The bytes as hexadecimal digits and, if they are ASCII, as text.
    private static func text(of bytes: ArraySlice<UInt8>) -> String {
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
        guard bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return digits }
        return "\(digits) ('\(String(decoding: bytes, as: UTF8.self))')"
    }
}
