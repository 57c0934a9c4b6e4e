import FreshetControl
import FreshetRender

/// A diagnostic in the format of `freshetd --check`: file:line:column, then the line with a caret.
enum DiagnosticView {
    static func text(_ diagnostic: ConfigurationDiagnostic) -> String {
        var place = diagnostic.file
        if let line = diagnostic.line {
            place += ":\(line)"
            if let column = diagnostic.column { place += ":\(column)" }
        }
        let severity =
            switch diagnostic.severity {
            case .error: "error"
            case .warning: "warning"
            case .unknown: "note"
            }
        let first = DisplayText.harmless("\(place): \(severity): \(diagnostic.message)")
        guard let line = diagnostic.line, let excerpt = diagnostic.excerpt else { return first }
        let number = String(line)
        let gutter = String(repeating: " ", count: max(0, 5 - number.count))
        let text = "\(first)\n\(gutter)\(number) | \(excerpt.unicodeScalars.map(shown).joined())"
        guard let caret = diagnostic.caret, caret >= 0 else { return text }
        let blank = String(repeating: " ", count: max(5, number.count))
        let padding = excerpt.unicodeScalars.prefix(Int(clamping: caret)).map(indentation).joined()
        return "\(text)\n\(blank) | \(padding)^"
    }

    /// Keeps tabs: the terminal decides their width, in the line and in the line of the caret.
    private static func shown(_ scalar: Unicode.Scalar) -> String {
        scalar == "\t" ? "\t" : DisplayText.harmless(String(scalar))
    }

    /// Blank space with the width of the character above it.
    private static func indentation(_ scalar: Unicode.Scalar) -> String {
        scalar == "\t" ? "\t" : String(repeating: " ", count: DisplayText.width(of: shown(scalar)))
    }
}
