/// No run was started: the origin, or the budget of requests, does not allow a request yet.
package struct TryLaterHint: Codable, Hashable, Sendable {
    /// The reason as a sentence, such as `the origin answered 429 with Retry-After`.
    package var reason: String
    /// When requests are allowed again, if known.
    package var until: Int64?

    package init(reason: String, until: Int64? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// A requested run that waits.
package struct WaitingHint: Codable, Hashable, Sendable {
    package var name: String
    /// Why the run waits, as a sentence.
    package var reason: String

    package init(name: String, reason: String) {
        self.name = name
        self.reason = reason
    }
}

/// The result of a request to refresh one pipeline.
package struct RefreshResult: Codable, Hashable, Sendable {
    package var name: String
    /// How the run ended; nil if the call did not wait for the run.
    package var outcome: RunOutcome?
    package var run: Int64?
    /// The current generation.
    package var generation: Int64?
    /// The size of that generation in bytes.
    package var size: Int64?
    package var durationUSec: Int64?
    /// Why the run failed, in one sentence.
    package var failure: String?
    /// Set if no run was started.
    package var tryLater: TryLaterHint?
    /// ``GenerationStatus/behind`` of that generation.
    package var behind: Bool?
    /// The failure for clients that may not read the published file; nil: they see no reason.
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

/// The result of a request for a further page.
package struct LoadMoreResult: Codable, Hashable, Sendable {
    package var name: String
    /// The keys of the branch; empty: the pipeline's own pages.
    package var path: [String]
    /// How the run ended; nil if the call did not wait for the run.
    package var outcome: RunOutcome?
    package var run: Int64?
    /// The current generation.
    package var generation: Int64?
    /// The size of that generation in bytes.
    package var size: Int64?
    package var durationUSec: Int64?
    /// Why the run failed, in one sentence.
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

/// An error or a warning in the configuration.
package struct ConfigurationDiagnostic: Codable, Hashable, Sendable {
    package enum Severity: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
        /// The configuration is not accepted.
        case error
        case warning
        /// A value that only a newer daemon knows.
        case unknown
    }

    package var severity: Severity
    package var file: String
    /// Counted from 1; nil if the error concerns the whole file.
    package var line: Int64?
    /// Counted from 1.
    package var column: Int64?
    package var message: String
    /// The line of the file; of a long line, the part around the error.
    package var excerpt: String?
    /// The number of Unicode scalars in the excerpt before the error.
    package var caret: Int64?

    package init(
        severity: Severity = .error, file: String, line: Int64? = nil, column: Int64? = nil, message: String,
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

/// How a reload changed the pipelines.
package struct ReloadSummary: Codable, Hashable, Sendable {
    package var added: [String]
    package var changed: [String]
    package var removed: [String]
    package var unchanged: Int64
    /// The first runs of new pipelines, and of changed pipelines whose copy is not one of their configuration any
    /// more; nil: there are none.
    package var requestedRuns: [RequestedRun]?
    /// The hooks of several pipelines that are new, changed or removed; nil: there are none.
    package var changedHooks: [String]?

    package init(
        added: [String] = [], changed: [String] = [], removed: [String] = [], unchanged: Int64 = 0,
        requestedRuns: [RequestedRun]? = nil, changedHooks: [String]? = nil
    ) {
        self.changedHooks = changedHooks
        self.requestedRuns = requestedRuns
        self.added = added
        self.changed = changed
        self.removed = removed
        self.unchanged = unchanged
    }
}
