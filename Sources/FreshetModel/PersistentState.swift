/// The state of a pipeline that is stored across restarts of the daemon.
package struct PersistentState: Hashable, Sendable {
    package var generation: CurrentGeneration?
    /// Why the copy is not known, as a clause: the index cannot be written now. Nil: it is known.
    package var copyError: String?
    /// The last check that succeeded, a 304 included.
    package var lastCheck: WallTime?
    /// When the checked data stops being fresh, as its origin states; nil: not
    /// known, or not configured.
    package var expires: WallTime?
    /// The end of the origin's `Retry-After`.
    package var retryAfter: WallTime?
    /// The number of the last run.
    package var lastRun: UInt64
    /// The record of that run; nil: there is none.
    package var lastRunRecord: RunRecord?
    /// The binding (`Snapshot.binding`) of the copy; nil: not known, or compared already. With another binding, the last
    /// check says nothing about the current configuration (``isOfOtherConfiguration``).
    package var binding: String?
    /// The used part of its budget.
    package var requests: [RequestBurst]
    /// The set values of its parameters, by name.
    package var parameters: [String: String]
    /// The sets of pages that may be continued.
    package var pages: [StoredPagesState]
    /// The content that a check rejected last, if it is kept.
    package var rejected: RejectedCandidate?
    /// The trusted comment of the last signed content.
    package var signed: SignedComment?
    /// Since when the operator holds the pipeline; nil: it is not held.
    package var heldSince: WallTime?
    /// Whether the checks were of another configuration: they give the age of the copy, but do not count for the
    /// current configuration.
    package var isOfOtherConfiguration = false

    package init(
        generation: CurrentGeneration? = nil, lastCheck: WallTime? = nil, expires: WallTime? = nil,
        retryAfter: WallTime? = nil,
        lastRun: UInt64 = 0, binding: String? = nil, requests: [RequestBurst] = [], parameters: [String: String] = [:],
        pages: [StoredPagesState] = []
    ) {
        self.generation = generation
        self.lastCheck = lastCheck
        self.expires = expires
        self.retryAfter = retryAfter
        self.lastRun = lastRun
        self.binding = binding
        self.requests = requests
        self.parameters = parameters
        self.pages = pages
    }
}

/// The trusted comment of a verified signature, with the content that it belongs to.
package struct SignedComment: Hashable, Sendable {
    /// The digest of the content that became the copy.
    package var digest: ContentDigest
    /// One line.
    package var comment: String

    package init(digest: ContentDigest, comment: String) {
        self.digest = digest
        self.comment = comment
    }
}
