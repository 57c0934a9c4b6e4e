/// Comparison of texts byte by byte. `==` compares canonical equivalence: a letter with an accent is the same as the
/// letter and a combining accent. Sources, programs and files see different bytes.
extension String {
    package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension [String: String] {
    /// Whether both have the same keys, whose values have the same bytes.
    package func hasSameBytes(as other: Self) -> Bool {
        count == other.count && allSatisfy { key, value in other[key]?.hasSameBytes(as: value) == true }
    }
}
