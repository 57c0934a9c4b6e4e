import FreshetConfiguration
import FreshetControl
import FreshetSystemd
import Logging

// Errors and warnings of the configuration, as the journal and clients get them.

extension LogLimiter {
    /// Logs an error or a warning of the configuration with its location.
    func log(_ diagnostic: Diagnostic) {
        log(.configurationError, level: diagnostic.severity == .error ? nil : .warning, diagnostic.fields)
    }
}

extension Diagnostic {
    /// The diagnostic without text from the file, which not every user may read.
    var forEverybody: Diagnostic {
        var diagnostic = self
        diagnostic.excerpt = nil
        diagnostic.quotation = nil
        return diagnostic
    }

    /// The diagnostic on one line: location, severity, error and remedy.
    var sentence: String { text().split(separator: "\n").first.map(String.init) ?? message }

    /// The diagnostic and its location, as fields of a log message.
    var fields: [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [.error: .string(sentence), .file: .string(file)]
        if let line { fields[.line] = .stringConvertible(line) }
        if let column { fields[.column] = .stringConvertible(column) }
        return fields
    }
}

extension RefusedReload {
    /// Makes a record that every client may see: it contains the name of the file and the error, but no text from the
    /// file.
    ///
    /// - Parameter errors: the errors of the configuration; nil is returned if there is none.
    init?(_ errors: [Diagnostic], at instant: Int64, _ redactor: Redactor) {
        guard let error = errors.first else { return nil }
        var first = ConfigurationDiagnostic(error.forEverybody)
        first.message = redactor.text(first.message)
        self.init(at: instant, errors: Int64(errors.count), first: first)
    }
}

extension InvalidHook {
    /// The hooks with errors, by name.
    static func all(of configuration: Configuration, _ redactor: Redactor) -> [InvalidHook] {
        configuration.invalidHooks.sorted { $0.key < $1.key }.map { name, diagnostics in
            let error = diagnostics.first { $0.severity == .error }?.forEverybody.sentence
            return InvalidHook(name: name, message: redactor.text(error ?? "its file has errors"))
        }
    }
}

extension ReloadSummary {
    /// One line for people, such as `1 added, 2 changed`, or `nothing changed`.
    var text: String {
        var parts = [(added.count, "added"), (changed.count, "changed"), (removed.count, "removed")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if let hooks = changedHooks {
            parts.append(hooks.count == 1 ? "1 hook changed" : "\(hooks.count) hooks changed")
        }
        return parts.isEmpty ? "nothing changed" : parts.joined(separator: ", ")
    }
}

extension ConfigurationDiagnostic {
    init(_ diagnostic: Diagnostic) {
        self.init(
            severity: diagnostic.severity == .error ? .error : .warning, file: diagnostic.file,
            line: diagnostic.line.map(Int64.init), column: diagnostic.column.map(Int64.init),
            message: diagnostic.explanation(), excerpt: diagnostic.excerpt?.text,
            caret: diagnostic.excerpt.map { Int64($0.caret) })
    }
}
