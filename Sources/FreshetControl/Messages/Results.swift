/// Nothing was started: the origin or a budget asks for patience.
package struct TryLaterHint: Codable, Hashable, Sendable {
    /// A sentence that says who asks, such as `the origin answered 429 with Retry-After`.
    package var reason: String
    /// Until when, if that is known.
    package var until: Int64?

    package init(reason: String, until: Int64? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// A run that was requested waits.
package struct WaitingHint: Codable, Hashable, Sendable {
    package var name: String
    /// What for, in a sentence.
    package var reason: String

    package init(name: String, reason: String) {
        self.name = name
        self.reason = reason
    }
}

/// What came of a request to refresh one pipeline.
package struct RefreshResult: Codable, Hashable, Sendable {
    package var name: String
    /// How the run ended; nil unless it was awaited.
    package var outcome: RunOutcome?
    package var run: Int64?
    /// The generation that is offered now.
    package var generation: Int64?
    /// That generation's bytes.
    package var size: Int64?
    package var durationUSec: Int64?
    /// Why it failed, in one sentence.
    package var failure: String?
    /// Set if nothing was started.
    package var tryLater: TryLaterHint?
    /// As of that generation: ``GenerationStatus/behind``.
    package var behind: Bool?
    /// The failure for those who may not read the published file; nil: nothing of it is for them.
    @Unencoded package var publicFailure: String?

    package init(
        name: String, outcome: RunOutcome? = nil, run: Int64? = nil, generation: Int64? = nil, size: Int64? = nil,
        durationUSec: Int64? = nil, failure: String? = nil, tryLater: TryLaterHint? = nil, behind: Bool? = nil,
        publicFailure: String? = nil
    ) {
        self.publicFailure = publicFailure
        self.behind = behind
        self.name = name
        self.outcome = outcome
        self.run = run
        self.generation = generation
        self.size = size
        self.durationUSec = durationUSec
        self.failure = failure
        self.tryLater = tryLater
    }
}

/// What came of a request for a further page.
package struct LoadMoreResult: Codable, Hashable, Sendable {
    package var name: String
    /// The keys that lead to the branch; none: the pipeline's own pages.
    package var path: [String]
    /// How the run ended; nil unless it was awaited.
    package var outcome: RunOutcome?
    package var run: Int64?
    /// The generation that is offered now.
    package var generation: Int64?
    /// That generation's bytes.
    package var size: Int64?
    package var durationUSec: Int64?
    /// Why it failed, in one sentence.
    package var failure: String?
    /// How many pages are in the copy now, and whether there are more.
    package var pages: Int64?
    package var hasMore: Bool?

    package init(
        name: String, path: [String], outcome: RunOutcome? = nil, run: Int64? = nil, generation: Int64? = nil,
        size: Int64? = nil, durationUSec: Int64? = nil, failure: String? = nil, pages: Int64? = nil,
        hasMore: Bool? = nil
    ) {
        self.name = name
        self.path = path
        self.outcome = outcome
        self.run = run
        self.generation = generation
        self.size = size
        self.durationUSec = durationUSec
        self.failure = failure
        self.pages = pages
        self.hasMore = hasMore
    }
}

/// Something that is wrong, or doubtful, in the configuration.
package struct ConfigurationDiagnostic: Codable, Hashable, Sendable {
    package enum Severity: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
        /// The configuration is refused for it.
        case fault
        case warning
        /// Of a newer daemon.
        case unknown
    }

    package var severity: Severity
    package var file: String
    /// Counted from 1; nil where the fault is the file's as a whole.
    package var line: Int64?
    /// Counted from 1.
    package var column: Int64?
    package var message: String
    /// The line of the file, or what is left of a long one around the fault.
    package var excerpt: String?
    /// How many Unicode scalars of the excerpt stand before the fault.
    package var caret: Int64?

    package init(
        severity: Severity = .fault, file: String, line: Int64? = nil, column: Int64? = nil, message: String,
        excerpt: String? = nil, caret: Int64? = nil
    ) {
        self.severity = severity
        self.file = file
        self.line = line
        self.column = column
        self.message = message
        self.excerpt = excerpt
        self.caret = caret
    }
}

/// What a reload did with the pipelines.
package struct ReloadSummary: Codable, Hashable, Sendable {
    package var added: [String]
    package var changed: [String]
    package var removed: [String]
    package var unchanged: Int64

    package init(added: [String] = [], changed: [String] = [], removed: [String] = [], unchanged: Int64 = 0) {
        self.added = added
        self.changed = changed
        self.removed = removed
        self.unchanged = unchanged
    }
}
