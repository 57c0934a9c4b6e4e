import FreshetPipelines

/// Reads one file into a node tree, strictly: one document, without anchors, aliases, tags, directives, merge keys and
/// duplicate keys. It collects errors until the first one after which the rest cannot be read.
struct YAMLReader {
    /// How deep lists and mappings may nest; the format needs five levels.
    static let maximumDepth = 32
    /// How many scalars, lists and mappings a file may have.
    static let maximumNodes = 20_000
    /// How many keys a mapping may have. Keys are searched linearly.
    static let maximumKeys = 1000

    private(set) var source: SourceText
    private(set) var errors: [Diagnostic] = []
    /// The keys that lead to the current node.
    private var path: [String] = []
    /// Whether the current node is in a mapping below a key of a secret, such as `auth: {type: basic, value: abc}`.
    private var isBelowSecret = false
    private var nodes = 0
    /// Where the scalars that are not keys are in the text, counted in Unicode scalars.
    private var values: [Range<Int>] = []

    /// An error that was reported and after which nothing more can be read.
    private struct Stop: Error {}

    /// Reads the file. The root is nil if the tree is incomplete. A file without content is an empty mapping.
    ///
    /// - Parameter memory: keeps the shape of a file without errors.
    static func read(
        _ source: SourceText, remembering memory: ReadingMemory? = nil
    ) -> (root: Node?, source: SourceText, errors: [Diagnostic]) {
        var reader = YAMLReader(source: source)
        let root = reader.root()
        if let memory, let root, reader.errors.isEmpty,
            let shape = YAMLShape(source, root: root, values: reader.values)
        {
            memory.keep(shape)
        }
        return (root, reader.source, reader.errors)
    }

    private init(source: SourceText) {
        self.source = source
    }

    private mutating func root() -> Node? {
        guard hasReadableText() else { return nil }
        return source.bytes.withUnsafeBufferPointer { bytes in
            guard var parser = YAMLParser(over: bytes) else {
                errors.append(Diagnostic(file: source.file, message: "there is not enough memory to read the file"))
                return nil
            }
            do throws(Stop) {
                return try document(from: &parser)
            } catch {
                return nil
            }
        }
    }

    /// Whether the text is UTF-8 with line breaks on which editors and libyaml agree. Reports an error if not.
    private mutating func hasReadableText() -> Bool {
        let bytes = source.bytes
        guard bytes.contains(where: { $0 >= 0x80 }) else { return true }
        if String(validating: bytes, as: UTF8.self) == nil {
            var decoder = UTF8()
            var iterator = bytes.makeIterator()
            var valid = 0
            while case .scalarValue(let scalar) = decoder.decode(&iterator) {
                valid += UTF8.width(scalar)
            }
            let byte = valid < bytes.count ? String(bytes[valid], radix: 16, uppercase: true) : "?"
            report(
                source.location(ofByte: valid), "the byte 0x\(byte) is not UTF-8",
                remedy: "save the file as UTF-8")
            return false
        }
        // YAML breaks lines at these three characters, editors do not, and the line numbers would differ.
        for (index, byte) in bytes.enumerated() where byte == 0xC2 || byte == 0xE2 {
            let rest = bytes[index...]
            guard let name = Self.strangeBreaks.first(where: { rest.starts(with: $0.bytes) })?.name else { continue }
            report(
                source.location(ofByte: index), "the line break \(name) is not supported",
                remedy: "end lines with a line feed; inside double quotes, write the character as an escape")
            return false
        }
        return true
    }

    private static let strangeBreaks: [(bytes: [UInt8], name: String)] = [
        ([0xC2, 0x85], "U+0085"), ([0xE2, 0x80, 0xA8], "U+2028"), ([0xE2, 0x80, 0xA9], "U+2029"),
    ]

    private mutating func document(from parser: inout YAMLParser) throws(Stop) -> Node {
        var root: Node?
        while true {
            let event = try next(from: &parser)
            switch event.kind {
            case .streamEnd:
                return root ?? Node(content: .mapping([]), location: location(event.start, orStartOfFile: true))
            case .documentStart(let hasDirectives):
                if hasDirectives {
                    report(
                        location((line: 1, column: 1)), "YAML directives ('%') are not supported",
                        remedy: "leave them out")
                }
                guard root == nil else {
                    report(
                        location(event.start), "a second document begins here, but a file has only one",
                        remedy: "move it to another file, or remove the '---'")
                    throw Stop()
                }
            case .other, .collectionEnd:
                continue
            case .scalar, .sequenceStart, .mappingStart, .alias:
                root = try node(from: event, &parser, depth: 0)
            }
        }
    }

    private mutating func node(
        from event: YAMLParser.Event, _ parser: inout YAMLParser, depth: Int
    ) throws(Stop) -> Node {
        let location = location(event.start)
        nodes += 1
        guard nodes <= Self.maximumNodes else {
            report(location, "the file has more than \(Self.maximumNodes) values", remedy: "split it")
            throw Stop()
        }
        guard depth <= Self.maximumDepth else {
            report(
                location, "values nest deeper than \(Self.maximumDepth) levels",
                remedy: "remove levels: no key of Freshet nests so deep")
            throw Stop()
        }
        let isRejected = rejectUnsupported(event, at: location)
        let content: Node.Content
        switch event.kind {
        case .scalar, .alias:
            // A secret that begins with an asterisk is an alias.
            if isBelowSecret || Self.mayHoldSecret(path) {
                source.secrets.append(.init(start: event.start, end: event.end))
            }
        default: break
        }
        switch event.kind {
        case .scalar(let scalar):
            values.append(event.range)
            content = .scalar(scalar)
        case .sequenceStart:
            content = .sequence(try sequence(from: &parser, depth: depth + 1))
        case .mappingStart:
            let outer = isBelowSecret
            isBelowSecret = outer || Self.mayHoldSecrets(below: path)
            defer { isBelowSecret = outer }
            content = .mapping(try mapping(from: &parser, depth: depth + 1))
        case .alias, .other, .collectionEnd, .documentStart, .streamEnd:
            content = .invalid
        }
        return Node(content: isRejected ? .invalid : content, location: location)
    }

    private mutating func sequence(from parser: inout YAMLParser, depth: Int) throws(Stop) -> [Node] {
        var elements: [Node] = []
        while true {
            let event = try next(from: &parser)
            if case .collectionEnd = event.kind { return elements }
            elements.append(try node(from: event, &parser, depth: depth))
        }
    }

    private mutating func mapping(from parser: inout YAMLParser, depth: Int) throws(Stop) -> [Node.Entry] {
        var entries: [Node.Entry] = []
        while true {
            let event = try next(from: &parser)
            let location = location(event.start)
            let key: String?
            switch event.kind {
            case .collectionEnd:
                return entries
            case .scalar(let scalar):
                nodes += 1
                key = rejectUnsupported(event, at: location) ? nil : scalar.text
            default:
                _ = try node(from: event, &parser, depth: depth)
                report(location, "a key has to be a word, not \(event.isAnchored ? "an alias" : "a list or a mapping")")
                key = nil
            }
            path.append(key ?? "")
            defer { path.removeLast() }
            // Only an error needs it.
            var keyPath: String { path.joined(separator: ".") }
            let value = try node(from: try next(from: &parser), &parser, depth: depth)
            guard let key else { continue }
            if key == "<<" {
                report(
                    location, "merge keys ('<<') are not supported",
                    remedy: "write the keys out, or put them into a drop-in, NAME.yaml.d/*.yaml", keyPath: keyPath)
            } else if let first = entries.first(where: { $0.key == key })?.location {
                report(
                    location, "the key \(key.quoted) appears twice", remedy: "keep one of them", keyPath: keyPath,
                    related: first)
            } else {
                guard entries.count < Self.maximumKeys else {
                    report(
                        location, "there are more than \(Self.maximumKeys) keys in one mapping",
                        remedy: "split the file")
                    throw Stop()
                }
                entries.append(Node.Entry(key: key, location: location, value: value))
            }
        }
    }

    /// Reports features of YAML that are not supported. Returns whether the node is rejected.
    private mutating func rejectUnsupported(_ event: YAMLParser.Event, at location: Location) -> Bool {
        if event.isAnchored {
            report(location, "anchors and aliases ('&', '*') are not supported", remedy: "write the value itself")
        }
        if event.isTagged {
            report(
                location, "tags ('!') are not supported", remedy: "leave it out; text that begins with '!' needs quotes"
            )
        }
        // Checked before the text is compared: comparing many combining characters is slow.
        var isUnsafe = false
        if case .scalar(let scalar) = event.kind { isUnsafe = !CombiningMarks.areFew(in: scalar.text.utf8) }
        if isUnsafe {
            report(
                location, "there are more than \(CombiningMarks.limit) combining characters in a row",
                remedy: "remove them; no language needs so many")
        }
        return event.isAnchored || event.isTagged || isUnsafe
    }

    private mutating func next(from parser: inout YAMLParser) throws(Stop) -> YAMLParser.Event {
        do throws(YAMLParser.YAMLSyntaxError) {
            return try parser.next()
        } catch {
            let place =
                switch error.place {
                case .mark(let line, let column):
                    source.clamped(Location(file: source.file, line: line, column: column))
                case .byte(let offset): source.location(ofByte: offset)
                }
            var message = "this is not YAML: \(error.problem)"
            if let context = error.context, !context.words.isEmpty {
                message += " \(context.words)"
                if context.line != place.line { message += " that begins in line \(context.line)" }
            }
            // The parser reads ahead: the line may contain a header's value that was not delivered as an event.
            let text = String(String.UnicodeScalarView(source.line(place.line) ?? []))
            // In `token: Bearer: abc`, only `Bearer` was delivered.
            let hasSecret = source.secrets.last.map { $0.end.line >= place.line } ?? false
            if hasSecret || isBelowSecret || Self.mayHoldSecret(path) || Self.namesSecret(text) {
                source.hiddenLines.insert(place.line)
            }
            report(place, message, remedy: Self.remedy(for: error.problem, inLine: text, column: place.column))
            throw Stop()
        }
    }

    /// Keys whose values may be secrets. A `body` may contain an API key. A `credential` is a name, but a user may
    /// write the secret itself there.
    private static let secretKeys = ["headers", "credential", "body"]

    private static func mayHoldSecret(_ path: [String]) -> Bool {
        if path.count > 1, path[0] == "parameters", SecretName.matches(path[1]) { return true }
        if path.contains(where: secretKeys.contains) { return true }
        // `token` is also a jq program below `sync-token`.
        return path.last.map(KeySynonyms.mayHoldSecret) == true && path.dropLast().last != "sync-token"
    }

    /// Whether a line that is not valid YAML may name a key of a secret.
    private static func namesSecret(_ line: String) -> Bool {
        secretKeys.contains(where: line.contains)
            || line.split { !($0.isLetter || $0 == "-" || $0 == "_") }.contains {
                KeySynonyms.mayHoldSecret(String($0))
            }
    }

    /// Whether all values of the mapping at this path may be secrets. Below some keys, users choose the names.
    private static func mayHoldSecrets(below path: [String]) -> Bool {
        guard let key = path.last, !keysOfNames.contains(path.dropLast().last ?? "") else { return false }
        return KeySynonyms.mayHoldSecret(key)
    }

    private static let keysOfNames = ["sources", "files", "parameters"]

    /// - Parameter column: where the problem is, counted from 1.
    private static func remedy(for problem: String, inLine text: String, column: Int) -> String? {
        if text.prefix(while: { $0 == " " || $0 == "\t" }).contains("\t") { return "indent with spaces, not with tabs" }
        if let word = wordWithBraces(inLine: text, column: column) {
            return "quote the \(word.contains("://") ? "URL" : "text"): it contains braces"
        }
        return switch problem {
        case "mapping values are not allowed in this context":
            "check the indentation, or quote the text if the ':' belongs to it"
        case "found character that cannot start any token": "quote the text"
        case "did not find expected alphabetic or numeric character": "quote the text"
        case "did not find expected key", "could not find expected ':'": "check the indentation and the quotes"
        case "did not find expected ',' or ']'", "did not find expected ',' or '}'": "close the bracket"
        case "found unexpected end of stream": "close the quotes"
        case "control characters are not allowed": "inside double quotes, write it as an escape"
        default: nil
        }
    }

    /// The word of a line around a column, if an opening brace inside the word or a closing brace before its end is
    /// there: without quotation marks, YAML reads the brace as a mapping.
    private static func wordWithBraces(inLine text: String, column: Int) -> String? {
        let scalars = Array(text.unicodeScalars)
        let index = column - 1
        guard scalars.indices.contains(index) else { return nil }
        func separates(_ position: Int) -> Bool {
            let scalar = scalars[position]
            return scalar == " " || scalar == "\t" || scalar == "," || scalar == "["
        }
        var start = index
        while start > 0, !separates(start - 1) { start -= 1 }
        var end = index
        while end < scalars.count, !separates(end) { end += 1 }
        let before = scalars[start..<index]
        let isInside = scalars[index] == "{" && !before.isEmpty && before.first != "{"
        let isBehind = before.first == "{" && before.last == "}" && scalars[index] != "}"
        guard isInside || isBehind else { return nil }
        var word = String.UnicodeScalarView()
        word.append(contentsOf: scalars[start..<end])
        return String(word)
    }

    private func location(_ place: (line: Int, column: Int), orStartOfFile: Bool = false) -> Location {
        orStartOfFile
            ? Location(file: source.file, line: 1, column: 1)
            : Location(file: source.file, line: place.line, column: place.column)
    }

    private mutating func report(
        _ location: Location, _ message: String, remedy: String? = nil, keyPath: String? = nil,
        related: Location? = nil
    ) {
        errors.append(
            Diagnostic(
                at: location, keyPath: keyPath, message: message, remedy: remedy, related: related))
    }
}
