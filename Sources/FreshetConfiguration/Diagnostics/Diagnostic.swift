/// A location in a configuration file. Lines and columns count from 1. Columns count Unicode scalars, as editors that
/// open `file:line:column` do.
package struct Location: Hashable, Sendable {
    /// The file's path as it was searched for.
    package var file: String
    package var line: Int
    package var column: Int

    package init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }
}

/// One error or warning of the configuration: its location, the message and the remedy. It contains everything that its
/// text needs, so that a program that cannot read the file can show it after it crossed a socket.
package struct Diagnostic: Hashable, Sendable {
    package enum Severity: String, CaseIterable, Hashable, Sendable {
        /// The definition cannot be used.
        case error
        /// The definition can be used, but is probably a mistake.
        case warning
    }

    /// The source line, cut to ``maximumExcerptWidth`` columns around the location. Values of request headers, and the
    /// user information and the query of URLs are replaced by asterisks: diagnostics end up in the journal.
    package struct Excerpt: Hashable, Sendable {
        package var text: String
        /// How many Unicode scalars of `text` precede the location.
        package var caret: Int
    }

    /// The path of the file as it was searched for, or of a directory that could not be read.
    package var file: String
    /// Counted from 1; nil if the diagnostic concerns the whole file.
    package var line: Int?
    /// Counted from 1, in Unicode scalars; nil if the diagnostic concerns the whole file.
    package var column: Int?
    package var severity: Severity
    /// The key with its parent keys, such as `refresh.retry.from`; nil if the diagnostic does not concern a key.
    package var keyPath: String?
    /// The error itself, without a full stop.
    package var message: String
    /// The error message of another program, such as jq. It may quote the file, which not every user may read.
    package var quotation: String?
    /// How to correct the error, if known.
    package var remedy: String?
    /// A second location that belongs to the error, such as the first of two equal keys.
    package var related: Location?
    /// The source line; nil if the diagnostic concerns the whole file, or if the line may contain a secret.
    package var excerpt: Excerpt?

    package init(
        file: String, line: Int? = nil, column: Int? = nil, severity: Severity = .error, keyPath: String? = nil,
        message: String, quotation: String? = nil, remedy: String? = nil, related: Location? = nil,
        excerpt: Excerpt? = nil
    ) {
        self.file = file
        self.line = line
        self.column = column
        self.severity = severity
        self.keyPath = keyPath
        self.message = message
        self.quotation = quotation
        self.remedy = remedy
        self.related = related
        self.excerpt = excerpt
    }

    init(
        at location: Location, severity: Severity = .error, keyPath: String? = nil, message: String,
        quotation: String? = nil, remedy: String? = nil, related: Location? = nil
    ) {
        self.init(
            file: location.file, line: location.line, column: location.column, severity: severity, keyPath: keyPath,
            message: message, quotation: quotation, remedy: remedy, related: related)
    }

    /// The reading order: by file, then from top to bottom; diagnostics of a whole file first.
    package static func areInReadingOrder(_ one: Diagnostic, _ other: Diagnostic) -> Bool {
        (one.file, one.line ?? 0, one.column ?? 0, one.message)
            < (other.file, other.line ?? 0, other.column ?? 0, other.message)
    }
}
