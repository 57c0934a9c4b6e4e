import Glibc

/// A digest of a history, which is the same in each process: FNV-1a with 64 bits.
package struct HistoryDigest: Sendable {
    package private(set) var number: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package mutating func add(_ text: String) {
        for byte in text.utf8 { number = (number ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }

    /// The file that `FRESHET_DIGESTS` names; nil: no digests are stored.
    private static var file: String? { getenv("FRESHET_DIGESTS").map { String(cString: $0) } }

    /// Whether digests are stored.
    package static let isStored = file != nil

    /// Appends the digest as a line `KIND SEED DIGEST`, so that the histories of two versions of the code can be
    /// compared.
    package func store(_ kind: String, _ seed: UInt64) {
        guard let path = Self.file, let file = fopen(path, "a") else { return }
        fputs("\(kind) \(seed) \(String(number, radix: 16))\n", file)
        fclose(file)
    }

    /// The seeds that `FRESHET_SEEDS` names, such as `1-50000`; nil: none.
    package static var seeds: ClosedRange<UInt64>? {
        guard let text = getenv("FRESHET_SEEDS").map({ String(cString: $0) }) else { return nil }
        let bounds = text.split(separator: "-").compactMap { UInt64($0) }
        return bounds.count == 2 && bounds[0] <= bounds[1] ? bounds[0]...bounds[1] : nil
    }
}
