/// A key that was pressed.
enum TopKey: Hashable, Sendable {
    case character(Character)
    case up, down, pageUp, pageDown, home, end
    case enter, escape, backspace, redraw
}

/// Parses the input of a terminal: letters in UTF-8, and sequences for other keys (ECMA-48, and those of xterm).
struct TopKeyReader: Sendable {
    private var bytes: [UInt8] = []

    /// Whether a sequence has begun and may continue: the caller waits a moment for the rest, and then calls
    /// ``flush()``.
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

    /// Ends an incomplete sequence: its beginning was a key itself.
    mutating func flush() -> [TopKey] {
        defer { bytes = [] }
        return bytes.first == 0x1B ? [.escape] : []
    }

    /// The first key and its number of bytes; nil if it is incomplete.
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
        // Parameters, then a final byte. Longer input is not a sequence.
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
