import FreshetControl
import FreshetRender

/// A diagnostic as compilers print it: file:line:column, then the line with a caret.
enum DiagnosticView {
    static func text(_ diagnostic: ConfigurationDiagnostic) -> String {
        var place = diagnostic.file
        if let line = diagnostic.line {
            place += ":\(line)"
            if let column = diagnostic.column { place += ":\(column)" }
        }
        let severity =
            switch diagnostic.severity {
            case .fault: "error"
            case .warning: "warning"
            }
        let first = DisplayText.harmless("\(place): \(severity): \(diagnostic.message)")
        guard let excerpt = diagnostic.excerpt else { return first }
        guard let column = diagnostic.column, column > 0, column <= excerpt.count + 1 else {
            return "\(first)\n    \(DisplayText.harmless(excerpt))"
        }
        let before = DisplayText.harmless(String(excerpt.prefix(Int(column) - 1)))
        let padding = String(repeating: " ", count: DisplayText.width(of: before))
        return "\(first)\n    \(DisplayText.harmless(excerpt))\n    \(padding)^"
    }
}
