/// Comparison of texts byte by byte. `==` compares canonical equivalence: a letter with an accent is the same as the
/// letter and a combining accent. Sources, programs and files see different bytes.
extension String {
    package func hasSameBytes(as other: String) -> Bool {
        let compared = utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { other in
                one.count == other.count && zip(one, other).allSatisfy { $0 == $1 }
            }
        }
        return (compared ?? nil) ?? utf8.elementsEqual(other.utf8)
    }
}

extension [String: String] {
    /// Whether both have the same keys, whose values have the same bytes.
    package func hasSameBytes(as other: Self) -> Bool {
        count == other.count && allSatisfy { key, value in other[key]?.hasSameBytes(as: value) == true }
    }
}

/// A text as a key: it is equal only to a text with the same bytes. Two files whose names differ only in their Unicode
/// normalization are two files.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (one: Self, other: Self) -> Bool { one.text.hasSameBytes(as: other.text) }

    /// Texts with the same bytes have the same hash; canonically equivalent texts have it too, which is rare.
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
