/// A place in a configuration file. Lines and columns count from 1; a column is a Unicode scalar, as editors that open
/// `file:line:column` count them.
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

/// One fault of the configuration: where it is, what is wrong and what to do. A value that carries all that its
/// rendering needs, so that it may cross a socket and be shown by a program that cannot read the file.
package struct Diagnostic: Hashable, Sendable {
    package enum Severity: String, CaseIterable, Hashable, Sendable {
        /// The definition cannot be used.
        case error
        /// It can be used, and is probably not what was meant.
        case warning
    }

    /// The source line, cut to ``maximumExcerptWidth`` columns around the fault. Values of request headers, the user
    /// information and the query of URLs are covered by asterisks: diagnostics end up in the journal.
    package struct Excerpt: Hashable, Sendable {
        package var text: String
        /// How many Unicode scalars of `text` stand before the fault.
        package var caret: Int

        package init(text: String, caret: Int) {
            self.text = text
            self.caret = caret
        }
    }

    /// The file's path as it was searched for; a directory's where that is what could not be read.
    package var file: String
    /// Counted from 1; nil if the fault is the file's as a whole.
    package var line: Int?
    /// Counted from 1, in Unicode scalars; nil if the fault is the file's as a whole.
    package var column: Int?
    package var severity: Severity
    /// The key, with those above it: `refresh.retry.from`; nil if no key is concerned.
    package var keyPath: String?
    /// What is wrong, without a full stop.
    package var message: String
    /// What another program says of it, such as jq of a program: it may quote the file, which not everybody may read.
    package var quotation: String?
    /// What to do about it, if that can be said.
    package var remedy: String?
    /// A second place that the fault is about, such as the first of two equal keys.
    package var related: Location?
    /// The source line, unless the fault is the file's as a whole or the line may hold a secret.
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

    /// The order in which people read faults: by file, then from top to bottom; those of a file as a whole first.
    package static func areInReadingOrder(_ one: Diagnostic, _ other: Diagnostic) -> Bool {
        (one.file, one.line ?? 0, one.column ?? 0, one.message)
            < (other.file, other.line ?? 0, other.column ?? 0, other.message)
    }
}
