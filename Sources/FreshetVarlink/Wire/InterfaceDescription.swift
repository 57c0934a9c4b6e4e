/// The parts of an interface description that a server needs: the name, and the names of each method's parameters.
///
/// The parser reads only these parts and does not validate the rest. Descriptions are part of the program, and its
/// tests parse them with other implementations.
struct InterfaceDescription: Hashable, Sendable {
    /// Why a description is invalid, for its author.
    struct ValidationError: Error, Hashable, CustomStringConvertible {
        var description: String
    }

    var name: String
    /// The names of the parameters of each method, in their order.
    var methods: [String: [String]]

    init(parsing text: String) throws(ValidationError) {
        var words = Words(text)
        guard words.next() == "interface", let name = words.next() else {
            throw ValidationError(description: "an interface description begins with 'interface' and a name")
        }
        self.name = name
        methods = [:]
        while let word = words.next() {
            // A field may have the name "method", so the contents of parentheses are skipped.
            if word == "(" { _ = words.fieldNames() }
            guard word == "method" else { continue }
            guard let method = words.next(), words.next() == "(" else {
                throw ValidationError(description: "'method' is followed by a name and '('")
            }
            methods[method] = words.fieldNames()
        }
    }

    /// Splits a text into words and punctuation, without its comments.
    ///
    /// The language is ASCII outside comments, so this compares bytes: to ask Unicode about each character would take
    /// a fifth of the start of a small daemon.
    private struct Words {
        private let text: [UInt8]
        private var position = 0

        init(_ text: String) { self.text = Array(text.utf8) }

        mutating func next() -> String? {
            skipSpaceAndComments()
            guard position < text.count else { return nil }
            let start = position
            position = text[start...].firstIndex { !Self.isOfWord($0) } ?? text.count
            if position == start { position += 1 }
            return String(decoding: text[start..<position], as: UTF8.self)
        }

        private mutating func skipSpaceAndComments() {
            while position < text.count {
                switch text[position] {
                case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): position += 1
                case UInt8(ascii: "#"):
                    position = text[position...].firstIndex(of: UInt8(ascii: "\n")) ?? text.count
                default: return
                }
            }
        }

        private static func isOfWord(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: byte >= 0x80
            }
        }

        /// The names of the fields of a structure, read from after its opening parenthesis to its closing parenthesis.
        mutating func fieldNames() -> [String] {
            var names: [String] = []
            var depth = 1
            var previous = ""
            while depth > 0, let word = next() {
                switch word {
                case "(": depth += 1
                case ")": depth -= 1
                case ":" where depth == 1: names.append(previous)
                default: break
                }
                previous = word
            }
            return names
        }
    }
}
