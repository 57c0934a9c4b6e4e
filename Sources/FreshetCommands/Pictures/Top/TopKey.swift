/// A key that was pressed.
enum TopKey: Hashable, Sendable {
    case character(Character)
    case up, down, pageUp, pageDown, home, end
    case enter, escape, backspace, redraw
}

/// What a terminal sends, as keys: letters in UTF-8, and sequences for the others (ECMA-48, and what xterm made of it).
struct TopKeyReader: Sendable {
    private var bytes: [UInt8] = []

    /// A sequence has begun that may go on: whoever reads waits a moment for the rest, and then calls ``flush()``.
    var isIncomplete: Bool { !bytes.isEmpty }

    mutating func read(_ new: some Sequence<UInt8>) -> [TopKey] {
        bytes += new
        var keys: [TopKey] = []
        while let (key, count) = next() {
            bytes.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// Nothing more came: what looked like the beginning of a sequence was a key itself.
    mutating func flush() -> [TopKey] {
        defer { bytes = [] }
        return bytes.first == 0x1B ? [.escape] : []
    }

    /// The first key and how many bytes it takes; nil: there is none yet.
    private func next() -> (TopKey?, Int)? {
        guard let first = bytes.first else { return nil }
        switch first {
        case 0x1B: return sequence()
        case 0x0D, 0x0A: return (.enter, 1)
        case 0x08, 0x7F: return (.backspace, 1)
        case 0x0C: return (.redraw, 1)
        case 0x00..<0x20: return (nil, 1)
        case 0x00..<0x80: return (.character(Character(Unicode.Scalar(first))), 1)
        default: return letter(first)
        }
    }

    private func letter(_ first: UInt8) -> (TopKey?, Int)? {
        let count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard bytes.count >= count else { return nil }
        guard let text = String(validating: bytes[..<count], as: UTF8.self), let only = text.first else {
            return (nil, 1)
        }
        return (.character(only), count)
    }

    private func sequence() -> (TopKey?, Int)? {
        guard bytes.count > 1 else { return nil }
        guard bytes[1] == 0x5B || bytes[1] == 0x4F else { return (.escape, 1) }
        // Parameters, then one byte that ends it. A sequence is short; what is longer is none.
        guard let end = bytes.dropFirst(2).prefix(14).firstIndex(where: { (0x40...0x7E).contains($0) }) else {
            return bytes.count < 16 ? nil : (nil, bytes.count)
        }
        let key: TopKey? =
            switch (bytes[end], bytes[2..<end].prefix { $0 != 0x3B }) {
            case (0x41, _): .up
            case (0x42, _): .down
            case (0x48, _): .home
            case (0x46, _): .end
            case (0x7E, [0x31]), (0x7E, [0x37]): .home
            case (0x7E, [0x34]), (0x7E, [0x38]): .end
            case (0x7E, [0x35]): .pageUp
            case (0x7E, [0x36]): .pageDown
            default: nil
            }
        return (key, end + 1)
    }
}
