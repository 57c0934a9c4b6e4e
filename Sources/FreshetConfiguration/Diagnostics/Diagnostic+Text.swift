extension Diagnostic {
    /// The widest excerpt, in columns of a terminal. With the gutter it fits the usual 120.
    package static let maximumExcerptWidth = 100

    /// The diagnostic as text for people, without a line break at the end:
    ///
    ///     pipelines/jwks.yaml:12:3: error: unknown key 'evry'; did you mean 'every'?
    ///        12 |   evry: 15min
    ///           |   ^
    ///
    /// - Parameter directory: Paths below this directory are shown relative to it.
    package func text(relativeTo directory: String? = nil) -> String {
        var text = Self.position(file: file, line: line, column: column, relativeTo: directory)
        text += ": \(severity.rawValue): \(explanation(relativeTo: directory))"
        guard let line, let excerpt else { return text }
        let number = String(line)
        let gutter = String(repeating: " ", count: max(0, 5 - number.count))
        let blank = String(repeating: " ", count: max(5, number.count))
        text += "\n\(gutter)\(number) | \(excerpt.text)\n\(blank) | \(excerpt.indentation)^"
        return text
    }

    /// The message, the remedy and the related location, on one line.
    package func explanation(relativeTo directory: String? = nil) -> String {
        var text = message
        if let quotation { text += ": \(quotation)" }
        if let remedy { text += "; \(remedy)" }
        if let related {
            let place = Self.position(
                file: related.file, line: related.line, column: related.column, relativeTo: directory)
            text += " (see \(place))"
        }
        return text
    }

    private static func position(file: String, line: Int?, column: Int?, relativeTo directory: String?) -> String {
        var shown = file[...]
        if let directory {
            let prefix = directory.hasSuffix("/") ? directory : directory + "/"
            if shown.hasPrefix(prefix) { shown = shown.dropFirst(prefix.count) }
        }
        // A name in a directory may have any character.
        var name = String.UnicodeScalarView()
        for scalar in shown.unicodeScalars { name.append(harmless: scalar) }
        return [String(name), line.map(String.init), column.map(String.init)].compactMap { $0 }
            .joined(separator: ":")
    }
}

extension Diagnostic.Excerpt {
    /// Cuts a source line around a column.
    ///
    /// - Parameters:
    ///   - line: The line without its break. Control characters are replaced here.
    ///   - column: Counted from 1. A column one past the end points to something that is missing there.
    init(line: some Sequence<Unicode.Scalar>, column: Int) {
        let scalars = line.map(Self.harmless)
        let caret = min(max(column - 1, 0), scalars.count)
        // The caret stays in the first two thirds, so that the text after it is shown too.
        var start = caret
        var width = 0
        while start > 0, width + scalars[start - 1].columns <= Diagnostic.maximumExcerptWidth * 2 / 3 {
            start -= 1
            width += scalars[start].columns
        }
        if scalars.reduce(0, { $0 + $1.columns }) <= Diagnostic.maximumExcerptWidth {
            start = 0
            width = scalars[..<caret].reduce(0) { $0 + $1.columns }
        }
        var end = caret
        while end < scalars.count, width + scalars[end].columns <= Diagnostic.maximumExcerptWidth {
            width += scalars[end].columns
            end += 1
        }
        var view = String.UnicodeScalarView()
        if start > 0 { view.append("…") }
        view.append(contentsOf: scalars[start..<end])
        if end < scalars.count { view.append("…") }
        self.init(text: String(view), caret: caret - start + (start > 0 ? 1 : 0))
    }

    /// The indentation that moves the caret below its column: a tab for a tab, because the terminal chooses its width,
    /// and spaces for all other characters.
    fileprivate var indentation: String {
        text.unicodeScalars.prefix(caret).map { scalar in
            scalar == "\t" ? "\t" : String(repeating: " ", count: scalar.columns)
        }.joined()
    }

    private static func harmless(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        scalar != "\t" && scalar.isReplacedInMessages ? "\u{FFFD}" : scalar
    }
}

extension Unicode.Scalar {
    /// Whether it is a control character, or changes the direction of text and so can hide the real content of a line.
    var actsOnTerminal: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Whether messages replace it: it acts on a terminal, or is an invisible mark of the writing direction, which
    /// values may contain.
    var isReplacedInMessages: Bool { actsOnTerminal || [0x061C, 0x200E, 0x200F].contains(value) }

    /// How many columns of a terminal it takes: zero for a combining mark, two for a wide character (the wide and
    /// full-width ranges of Unicode's annex 11, joined where the gaps are unassigned).
    var columns: Int {
        guard value >= 0x300 else { return 1 }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
            0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}

extension String.UnicodeScalarView {
    /// Appends a character of a message; as `\u{…}` if messages replace it.
    fileprivate mutating func append(harmless scalar: Unicode.Scalar) {
        if scalar.isReplacedInMessages {
            append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
        } else {
            append(scalar)
        }
    }
}

extension StringProtocol {
    /// The text in quotation marks for a message: on one line, without control characters, without the secrets of URLs,
    /// and at most 48 characters long.
    var quoted: String {
        let longest = 48
        let masked = SourceText.masking(Array(unicodeScalars))
        var view = String.UnicodeScalarView()
        for scalar in masked.prefix(longest) { view.append(harmless: scalar) }
        if masked.count > longest { view.append("…") }
        return "'\(String(view))'"
    }
}
