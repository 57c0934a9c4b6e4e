/// The header field `Link` (RFC 8288, 3), parsed as its appendix B.2 says, so that an error in one link does not affect
/// the others.
package enum LinkField {
    /// The target of the first link with this relation, as written: a reference that may be relative to the answer's
    /// URL. Nil if there is none. Links whose context is another resource (`anchor`) are skipped.
    ///
    /// - Parameters:
    ///   - relation: such as `next`; case does not matter.
    ///   - values: the values of all `Link` fields of the answer.
    package static func target(of relation: String, in values: [String]) -> String? {
        // By bytes: comparing strings may take quadratic time (``CombiningMarks``).
        let relation = Array(relation.lowercased().utf8)
        for value in values {
            var reader = Reader(rest: Array(value.utf8)[...])
            while let link = reader.link() {
                if link.relations.contains(where: { $0.utf8.elementsEqual(relation) }), !link.hasAnchor {
                    return link.target
                }
            }
        }
        return nil
    }

    private struct Link {
        var target: String
        var relations: [String] = []
        var hasAnchor = false
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func link() -> Link? {
            skip { $0 == UInt8(ascii: ",") || Self.isSpace($0) }
            guard take(UInt8(ascii: "<")) else { return nil }
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
            var link = Link(target: String(decoding: rest[..<end], as: UTF8.self))
            rest = rest[end...].dropFirst()
            while let (name, value) = parameter() {
                switch name {
                // The first `rel` counts (3.3).
                case "rel" where link.relations.isEmpty:
                    link.relations = value.lowercased().split(whereSeparator: \.isWhitespace).map(String.init)
                case "anchor": link.hasAnchor = true
                default: break
                }
            }
            // Anything else before the next comma is ignored.
            skip { $0 != UInt8(ascii: ",") }
            return link
        }

        private mutating func parameter() -> (name: String, value: String)? {
            skip(Self.isSpace)
            guard take(UInt8(ascii: ";")) else { return nil }
            skip(Self.isSpace)
            let name = word { $0 != UInt8(ascii: "=") && !Self.isEnd($0) && !Self.isSpace($0) }.lowercased()
            skip(Self.isSpace)
            guard take(UInt8(ascii: "=")) else { return (name, "") }
            skip(Self.isSpace)
            return (name, rest.first == UInt8(ascii: "\"") ? quoted() : word { !Self.isEnd($0) && !Self.isSpace($0) })
        }

        /// A quoted string (RFC 9110, 5.6.4); without a closing quotation mark, the rest of the field.
        private mutating func quoted() -> String {
            _ = take(UInt8(ascii: "\""))
            var bytes: [UInt8] = []
            while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
                bytes.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        private mutating func word(_ belongs: (UInt8) -> Bool) -> String {
            let word = rest.prefix(while: belongs)
            rest = rest[word.endIndex...]
            return String(decoding: word, as: UTF8.self)
        }

        private mutating func skip(_ isPassed: (UInt8) -> Bool) { rest = rest.drop(while: isPassed) }

        private mutating func take(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest = rest.dropFirst()
            return true
        }

        private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        private static func isEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ";") || byte == UInt8(ascii: ",") }
    }
}
