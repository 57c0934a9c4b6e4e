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
        let code = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.prefix { $0 != "#" } }.joined(separator: "\n")
        var words = Words(code)
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

    /// Splits a text into words and punctuation.
    private struct Words {
        private var rest: Substring

        init(_ text: String) { rest = text[...] }

        mutating func next() -> String? {
            rest = rest.drop(while: \.isWhitespace)
            guard let first = rest.first else { return nil }
            let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
            let token = word.isEmpty ? rest.prefix(1) : word
            rest = rest.dropFirst(token.count)
            return word.isEmpty ? String(first) : String(word)
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
