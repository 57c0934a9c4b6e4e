/// A pattern as in a shell: `*` stands for any text, `?` for one byte, `[a-z]` and `[!a-z]` for a byte of a set, and
/// `\` makes the next character stand for itself (fnmatch(3) without flags, in the C locale).
///
/// A match costs at most the length of the pattern times that of the name. fnmatch(3) tries each `*` again for each `*`
/// before it, so a pattern from outside could need exponential time there.
package struct GlobPattern: Hashable, Sendable {
    private enum Element: Hashable {
        case byte(UInt8)
        case anyByte
        case anyText
        case set([ClosedRange<UInt8>], isNegated: Bool)

        func takes(_ byte: UInt8) -> Bool {
            switch self {
            case .byte(let wanted): wanted == byte
            case .anyByte, .anyText: true
            case .set(let ranges, let isNegated): ranges.contains { $0.contains(byte) } != isNegated
            }
        }
    }

    private let elements: [Element]

    package init(_ text: String) {
        var rest = text.utf8[...]
        var elements: [Element] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "*"):
                // Several stars in a row match the same as one.
                if elements.last != .anyText { elements.append(.anyText) }
            case UInt8(ascii: "?"): elements.append(.anyByte)
            case UInt8(ascii: "["): elements.append(Self.set(&rest) ?? .byte(byte))
            case UInt8(ascii: "\\"): elements.append(.byte(rest.popFirst() ?? byte))
            default: elements.append(.byte(byte))
            }
        }
        self.elements = elements
    }

    /// Whether a text has a special character of patterns. Names of pipelines cannot have such characters.
    package static func isPattern(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }
    }

    /// Parses a set after its `[`. Nil: no `]` ends the set, so the `[` stands for itself.
    private static func set(_ rest: inout Substring.UTF8View) -> Element? {
        var inner = rest
        let isNegated = inner.first == UInt8(ascii: "!") || inner.first == UInt8(ascii: "^")
        if isNegated { inner.removeFirst() }
        var ranges: [ClosedRange<UInt8>] = []
        while let first = inner.popFirst() {
            // A `]` in first position is a member of the set.
            if first == UInt8(ascii: "]"), !ranges.isEmpty {
                rest = inner
                return .set(ranges, isNegated: isNegated)
            }
            let lower = first == UInt8(ascii: "\\") ? inner.popFirst() ?? first : first
            if inner.first == UInt8(ascii: "-"), let upper = inner.dropFirst().first, upper != UInt8(ascii: "]") {
                inner = inner.dropFirst(2)
                // A range with its ends in the wrong order matches no name: it becomes NUL, which no name has.
                ranges.append(lower <= upper ? lower...upper : 0...0)
            } else {
                ranges.append(lower...lower)
            }
        }
        return nil
    }

    /// Whether the pattern matches the whole name.
    package func matches(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { matches($0) }
    }

    /// Matches byte by byte. After a mismatch, the last `*` takes one byte more. An earlier `*` need not be tried
    /// again, because the elements between the two stars already match at the first possible place.
    private func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        var element = 0
        var byte = 0
        var star: (element: Int, byte: Int)?
        while byte < name.count {
            if element < elements.count, elements[element] == .anyText {
                star = (element + 1, byte)
                element += 1
            } else if element < elements.count, elements[element].takes(name[byte]) {
                element += 1
                byte += 1
            } else if let last = star {
                star = (last.element, last.byte + 1)
                element = last.element
                byte = last.byte + 1
            } else {
                return false
            }
        }
        return elements[element...].allSatisfy { $0 == .anyText }
    }
}
