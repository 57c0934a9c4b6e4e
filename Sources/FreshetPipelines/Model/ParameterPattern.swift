internal import Glibc

/// A regular expression that a whole value must match: an extended regular expression of regex(7), with the additional
/// classes `\w`, `\d` and `\s`, also in brackets, and a backslash before any punctuation character for the character
/// itself.
///
/// The C library matches it, always by Unicode characters (the locale `C.UTF-8`), whatever the daemon's own locale is:
/// `\w` and `[[:alpha:]]` match letters of all scripts, `.` matches one character. Ranges are of ASCII characters, by
/// code point. There are no back-references and no look-around, so the time is bounded by the lengths of the pattern
/// and the value.
package struct ParameterPattern: ~Copyable {
    /// Why a pattern is invalid: the rest of a sentence whose subject is the pattern.
    package struct ValidationError: Error, Hashable, Sendable {
        package var message: String
        package var remedy: String?

        init(_ message: String, remedy: String? = nil) {
            self.message = message
            self.remedy = remedy
        }
    }

    private let compiled: regex_t
    private let locale: UnicodeLocale

    package init(_ pattern: String) throws(ValidationError) {
        guard pattern.utf8.count <= ParameterLimits.patternBytes else {
            throw ValidationError("is longer than \(ParameterLimits.patternBytes) bytes")
        }
        var translation = PatternTranslation(pattern)
        let text = try translation.text()
        guard let locale = UnicodeLocale() else {
            throw ValidationError(
                "cannot be used: this machine does not have the locale C.UTF-8",
                remedy: "install it; in Debian it is part of the package libc-bin")
        }
        var compiled = regex_t()
        let status = locale.use { regcomp(&compiled, text, REG_EXTENDED) }
        guard status == 0 else {
            var reason = [CChar](repeating: 0, count: 128)
            _ = regerror(status, nil, &reason, reason.count)
            let bytes = reason.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }
            throw ValidationError("is not a regular expression: \(String(decoding: bytes, as: UTF8.self).lowercased())")
        }
        self.compiled = compiled
        self.locale = locale
    }

    deinit {
        var compiled = compiled
        regfree(&compiled)
    }

    /// Whether a whole text matches. regexec(3) finds the first match, and of matches that begin there the longest: if
    /// a match spans the text, it is the one that is found.
    package func matches(_ text: String) -> Bool {
        var compiled = compiled
        var match = regmatch_t()
        let status = locale.use { regexec(&compiled, text, 1, &match, 0) }
        return status == 0 && match.rm_so == 0 && Int(match.rm_eo) == text.utf8.count
    }
}

/// Sets `C.UTF-8` for the calling thread during a call.
private struct UnicodeLocale: ~Copyable {
    private let locale: locale_t

    init?() {
        guard let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil) else { return nil }
        self.locale = locale
    }

    deinit { freelocale(locale) }

    func use<Result>(_ body: () -> Result) -> Result {
        let before = uselocale(locale)
        defer { _ = uselocale(before) }
        return body()
    }
}

/// Translates a pattern to the syntax of regcomp(3), which takes a backslash in brackets literally and has no `\d`.
private struct PatternTranslation {
    /// The most states of a pattern with its repetitions written out, as the C library does.
    private static let mostStates = 10_000
    private static let classes: [Character: (inside: String, outside: String)] = [
        "w": ("[:alnum:]_", "[[:alnum:]_]"), "d": ("0-9", "[0-9]"), "s": ("[:space:]", "[[:space:]]"),
        "W": ("", "[^[:alnum:]_]"), "D": ("", "[^0-9]"), "S": ("", "[^[:space:]]"),
    ]

    private var rest: Substring
    private var result = ""
    /// The number of states of each open group, and of its last part alone.
    private var groups = [(all: 0, last: 0)]

    init(_ pattern: String) { rest = pattern[...] }

    mutating func text() throws(ParameterPattern.ValidationError) -> String {
        while let character = rest.popFirst() {
            switch character {
            case "\\": try escape()
            case "[":
                try bracket()
                count()
            case "(":
                guard rest.first != "?" else {
                    throw ParameterPattern.ValidationError(
                        "has '(?'", remedy: "groups are written (…) here, and have no options")
                }
                result.append(character)
                groups.append((0, 0))
            case ")":
                guard groups.count > 1, let inner = groups.popLast() else {
                    throw ParameterPattern.ValidationError("has a ')' without its '('", remedy: "a literal one is \\)")
                }
                result.append(character)
                count(max(inner.all, 1))
            case "{": try repetition()
            case "|", "*", "+", "?", "^", "$": result.append(character)
            default:
                result.append(character)
                count(character.unicodeScalars.count)
            }
            guard groups.reduce(0, { $0 + $1.all }) <= Self.mostStates else {
                throw ParameterPattern.ValidationError(
                    "repeats too much", remedy: "a value's length is limited anyway: use * or +")
            }
        }
        return result
    }

    private mutating func count(_ states: Int = 1) {
        groups[groups.count - 1].all += states
        groups[groups.count - 1].last = states
    }

    private mutating func escape() throws(ParameterPattern.ValidationError) {
        guard let character = rest.popFirst() else { throw ParameterPattern.ValidationError("ends in a backslash") }
        if let named = Self.classes[character] {
            result += named.outside
        } else {
            try Self.checkMark(character)
            result += "\\\(character)"
        }
        count()
    }

    private static func checkMark(_ character: Character) throws(ParameterPattern.ValidationError) {
        guard let byte = character.asciiValue, byte > 0x20, byte < 0x7F, !character.isLetter, !character.isNumber else {
            throw ParameterPattern.ValidationError(
                "has '\\\(character)', which is not supported",
                remedy: "the classes are \\w, \\d, \\s, \\W, \\D and \\S")
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`.
    private mutating func repetition() throws(ParameterPattern.ValidationError) {
        guard let end = rest.firstIndex(of: "}") else {
            throw ParameterPattern.ValidationError("has a '{' without its '}'", remedy: "a literal one is \\{")
        }
        let numbers = rest[..<end].split(separator: ",", omittingEmptySubsequences: false)
        let most = (numbers.last.flatMap { Int($0) } ?? numbers.first.flatMap { Int($0) }) ?? 0
        guard (1...2).contains(numbers.count), numbers.first.map({ Int($0) != nil }) ?? false, most <= Self.mostStates
        else {
            throw ParameterPattern.ValidationError("has braces that are not a repetition such as {2} or {1,8}")
        }
        result += "{\(rest[...end])"
        rest = rest[rest.index(after: end)...]
        let (all, last) = groups[groups.count - 1]
        groups[groups.count - 1] = (all + last * max(most - 1, 0), last * max(most, 1))
    }

    /// A bracket expression. For regcomp(3), `]` must be the first, `-` the last and `^` neither.
    private mutating func bracket() throws(ParameterPattern.ValidationError) {
        let isNegated = rest.first == "^"
        if isNegated { rest.removeFirst() }
        var items = ""
        var marks: Set<Character> = []
        var isFirst = true
        while true {
            guard var character = rest.popFirst() else {
                throw ParameterPattern.ValidationError("has a '[' without its ']'", remedy: "a literal one is \\[")
            }
            if character == "]", !isFirst { break }
            isFirst = false
            if character == "[", let kind = rest.first, ":.=".contains(kind) {
                items += try named(kind)
                continue
            }
            if character == "\\" {
                guard let escaped = rest.popFirst() else {
                    throw ParameterPattern.ValidationError("ends in a backslash")
                }
                if let named = Self.classes[escaped], !named.inside.isEmpty {
                    items += named.inside
                    continue
                }
                try Self.checkMark(escaped)
                character = escaped
            }
            if rest.first == "-", let last = rest.dropFirst().first, last != "]" {
                rest = rest.dropFirst(2)
                guard !"[]^-\\".contains(character), !"[]^-\\".contains(last) else {
                    throw ParameterPattern.ValidationError(
                        "has a range that begins or ends with a bracket, '^', '-' or a backslash",
                        remedy: "write its characters out")
                }
                guard character.isASCII, last.isASCII else {
                    throw ParameterPattern.ValidationError(
                        "has a range of characters that are not ASCII",
                        remedy: "list them, or write [[:alpha:]] for the letters of all scripts")
                }
                items += "\(character)-\(last)"
            } else if "[]^-".contains(character) {
                marks.insert(character)
            } else {
                items.append(character)
            }
        }
        write(isNegated: isNegated, items, marks)
    }

    /// The rest of a named class such as `[:alpha:]`.
    private mutating func named(_ kind: Character) throws(ParameterPattern.ValidationError) -> String {
        var text = "["
        while let character = rest.popFirst() {
            text.append(character)
            if character == "]", text.count > 3, text.dropLast().last == kind { return text }
        }
        throw ParameterPattern.ValidationError("has a '[\(kind)' without its '\(kind)]'")
    }

    private mutating func write(isNegated: Bool, _ items: String, _ marks: Set<Character>) {
        if !isNegated, items.isEmpty, marks == ["^"] {
            result += "\\^"
            return
        }
        // With only `^`, which must not be first, `-` goes before it.
        let dashFirst = !isNegated && items.isEmpty && marks == ["^", "-"]
        result += isNegated ? "[^" : "["
        if marks.contains("]") { result += "]" }
        if dashFirst { result += "-" }
        result += items
        if marks.contains("[") { result += "[" }
        if marks.contains("^") { result += "^" }
        if marks.contains("-"), !dashFirst { result += "-" }
        result += "]"
    }
}
