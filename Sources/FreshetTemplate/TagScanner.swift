import FreshetHelper

/// An error of a template, with its position. Lines and columns count from 1, columns in Unicode scalars; both are 0 if
/// the position is unknown.
struct TemplateError: Error, Hashable {
    var line: Int
    var column: Int
    var message: String
    /// The kind of error.
    var status = HelperReply.Status.invalidProgram

    /// On the wire, in a reply.
    var text: String { "\(line) \(column) \(message)" }
}

/// Finds the tags of a template before swift-mustache parses it.
///
/// swift-mustache writes nothing for partials and for transforms that it does not know, and has no limit of nesting.
/// Here they are errors, with better positions. The scanner also finds where a name is used.
struct TagScanner {
    /// How deep sections may be nested; each level takes stack.
    static let depthLimit = 64
    /// The functions of an item's position in its list.
    static let functions: Set<String> = ["first()", "last()", "index()", "even()", "odd()"]

    struct Tag: Hashable {
        /// `#`, `^`, `/`, or nil for a variable.
        var sigil: Character?
        var name: String
        var line: Int
        var column: Int
    }

    /// The tags with names, in their order.
    private(set) var tags: [Tag] = []

    private let scalars: [Unicode.Scalar]
    private var position = 0
    /// The line of `counted`, and where it begins.
    private var line = 1
    private var lineStart = 0
    private var counted = 0
    private var opening: [Unicode.Scalar] = ["{", "{"]
    private var closing: [Unicode.Scalar] = ["}", "}"]
    private var sections: [Tag] = []

    init(_ template: String) throws(TemplateError) {
        scalars = Array(template.unicodeScalars)
        while find(opening) {
            let start = position
            try readTag()
            try checkNeighbours(start)
        }
        if let section = sections.last {
            throw Self.error(
                at: section, "the section '\(section.name)' is not closed: {{/\(section.name)}} is missing")
        }
    }

    /// Where a variable is first used.
    func variable(_ name: String) -> Tag? { tags.first { $0.sigil == nil && $0.name == name } }

    // MARK: Tags

    private mutating func readTag() throws(TemplateError) {
        let start = position
        position += opening.count
        guard position < scalars.count else { throw error(at: start, "the tag is not closed") }
        let sigil = scalars[position]
        switch sigil {
        case "!":
            guard find(closing) else { throw error(at: start, "the comment is not closed") }
            position += closing.count
        case "=": try readDelimiters(start)
        case "{":
            guard closing == ["}", "}"] else {
                throw error(at: start, "write & instead of { with other delimiters")
            }
            position += 1
            try addTag(nil, name(start, end: closing + ["}"]), start)
        case "&":
            position += 1
            try addTag(nil, name(start, end: closing), start)
        case "#", "^", "/":
            position += 1
            try addTag(Character(sigil), name(start, end: closing), start)
        case ">", "<", "$": throw error(at: start, "a template cannot use other templates: {{\(sigil)…}}")
        case "%": throw error(at: start, "pragmas are not supported: {{%…}}; transform.escape sets the escape")
        default: try addTag(nil, name(start, end: closing), start)
        }
    }

    /// swift-mustache reads characters, and a brace that is one character with its neighbour does not count as a brace:
    /// with a combining mark after it, or with a mark such as U+0600 before it.
    private mutating func checkNeighbours(_ start: Int) throws(TemplateError) {
        func areOne(_ first: Int) -> Bool {
            guard first >= 0, first + 1 < scalars.count, !scalars[first].isASCII || !scalars[first + 1].isASCII else {
                return false
            }
            return String(String.UnicodeScalarView(scalars[first...first + 1])).count == 1
        }
        guard !areOne(start - 1) else {
            throw error(at: start, "the character before the tag joins its first brace; put another one between them")
        }
        guard !areOne(position - 1) else {
            throw error(
                at: start, "the combining character after the tag joins its last brace; put another one between them")
        }
    }

    private mutating func addTag(_ sigil: Character?, _ name: String, _ start: Int) throws(TemplateError) {
        let tag = tag(sigil, name, at: start)
        try checkName(name, tag)
        tags.append(tag)
        switch sigil {
        case "#", "^":
            guard sections.count < Self.depthLimit else {
                throw Self.error(at: tag, "sections are nested deeper than \(Self.depthLimit) levels")
            }
            sections.append(tag)
        case "/":
            guard let section = sections.popLast() else {
                throw Self.error(at: tag, "{{/\(name)}} closes no section")
            }
            guard section.name == name else {
                throw Self.error(
                    at: tag, "{{/\(name)}} does not close the section '\(section.name)' of line \(section.line)")
            }
        default: break
        }
    }

    private func checkName(_ name: String, _ tag: Tag) throws(TemplateError) {
        if name == "." { return }
        if name.contains("(") || name.contains(")") {
            guard Self.functions.contains(name) else {
                throw Self.error(
                    at: tag, "'\(name)' is not a function; there are \(Self.functions.sorted().joined(separator: ", "))"
                )
            }
            guard tag.sigil != nil || name == "index()" else {
                throw Self.error(at: tag, "'\(name)' needs a section: {{#\(name)}}…{{/\(name)}}")
            }
            return
        }
        guard !name.hasPrefix("."), !name.hasSuffix("."), !name.contains("..") else {
            throw Self.error(at: tag, "'\(name)' is not a name: a dot is between two names, or alone")
        }
    }

    /// The name in a tag, whose end is passed.
    private mutating func name(_ start: Int, end: [Unicode.Scalar]) throws(TemplateError) -> String {
        skipBlanks()
        let first = position
        while position < scalars.count, Self.isOfName(scalars[position]) { position += 1 }
        let name = String(String.UnicodeScalarView(scalars[first..<position]))
        skipBlanks()
        guard matches(end) else {
            let closed = find(closing)
            throw error(
                at: start,
                closed
                    ? "a tag has one name, of ASCII letters, digits, '-', '_', '?' and '*', with dots between names"
                    : "the tag is not closed")
        }
        guard !name.isEmpty else { throw error(at: start, "the tag has no name") }
        position += end.count
        return name
    }

    private mutating func readDelimiters(_ start: Int) throws(TemplateError) {
        position += 1
        let first = position
        guard find(["="] + closing) else { throw error(at: start, "the tag for other delimiters is not closed") }
        let words = scalars[first..<position].split(whereSeparator: \.properties.isWhitespace)
        position += 1 + closing.count
        guard words.count == 2, words.allSatisfy({ $0.allSatisfy { $0.isASCII && $0 != "=" } }) else {
            throw error(at: start, "other delimiters are written {{=<% %>=}}")
        }
        (opening, closing) = (Array(words[0]), Array(words[1]))
    }

    // MARK: Text

    /// Advances to the next place of these scalars. Returns false, at the end, if there is none.
    private mutating func find(_ wanted: [Unicode.Scalar]) -> Bool {
        while position < scalars.count {
            if matches(wanted) { return true }
            position += 1
        }
        return false
    }

    private func matches(_ wanted: [Unicode.Scalar]) -> Bool {
        position + wanted.count <= scalars.count
            && scalars[position..<position + wanted.count].elementsEqual(wanted)
    }

    private mutating func skipBlanks() {
        while position < scalars.count, scalars[position] == " " || scalars[position] == "\t" { position += 1 }
    }

    /// The characters that swift-mustache allows.
    private static func isOfName(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "0"..."9", "a"..."z", "A"..."Z", ".", "-", "_", "?", "*", "(", ")": true
        default: false
        }
    }

    // MARK: Positions

    private mutating func tag(_ sigil: Character?, _ name: String, at start: Int) -> Tag {
        while counted < start {
            if scalars[counted] == "\n" { (line, lineStart) = (line + 1, counted + 1) }
            counted += 1
        }
        return Tag(sigil: sigil, name: name, line: line, column: start - lineStart + 1)
    }

    private mutating func error(at start: Int, _ message: String) -> TemplateError {
        Self.error(at: tag(nil, "", at: start), message)
    }

    private static func error(at tag: Tag, _ message: String) -> TemplateError {
        TemplateError(line: tag.line, column: tag.column, message: message)
    }
}
