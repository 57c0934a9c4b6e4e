import TestSupport

/// Inputs that are nearly right: seeds with a few changes. The same numbers make the same inputs in any process.
struct Mutator {
    private let seeds: [[UInt8]]
    private let limit: Int
    private var random: SeededGenerator

    init(_ seeds: [[UInt8]], limit: Int, seed: UInt64) {
        self.seeds = seeds
        self.limit = limit
        random = SeededGenerator(seed: seed)
    }

    /// Pieces of text that often cause errors in readers.
    private static let pieces: [[UInt8]] =
        [
            "\n", "\r\n", "\0", "\t", " ", ",", ";", ":", "=", "\"", "'", "\\", "/", "%", "<", ">", "{", "}", "[", "]",
            "(",
            ")", "-", "+", ".", "0", "1e999", "-1", "9223372036854775807", "-9223372036854775808",
            "18446744073709551616",
            "null", "true", "\\u0000", "\\ud83d", "\u{301}", "\u{FEFF}", "\u{2028}", "é", "😀", "%%\n",
        ].map { Array($0.utf8) } + [
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 0],
            [4, 0, 0, 0],
        ]

    mutating func next() -> [UInt8] {
        var bytes = seeds.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, place + Int.random(in: 0...24, using: &random))
            switch Int.random(in: 0..<7, using: &random) {
            case 0: bytes.insert(contentsOf: Self.pieces.randomElement(using: &random) ?? [], at: place)
            case 1 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 2 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 3: bytes.removeSubrange(place..<end)
            case 4:
                let part = Array(bytes[place..<end])
                for _ in 0..<Int.random(in: 1...20, using: &random) { bytes.insert(contentsOf: part, at: place) }
            case 5:
                let other = seeds.randomElement(using: &random) ?? []
                bytes.replaceSubrange(place..., with: other.dropFirst(Int.random(in: 0...other.count, using: &random)))
            default:
                bytes.insert(
                    contentsOf: bytes[place..<end], at: Int.random(in: 0...bytes.count, using: &random))
            }
        }
        return Array(bytes.prefix(limit))
    }
}
