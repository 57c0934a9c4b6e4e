package import FreshetModel

/// The activity of a pipeline.
package enum PipelineActivity: Hashable, Sendable {
    /// The pipeline has not run yet.
    case idle
    indirect case waiting(Wait)
    indirect case loading(LoadProgress)
    case loaded
    /// The last run failed. The published copy stays; see ``PipelineStatus/generation``.
    indirect case failed(RunFailure, since: BootInstant, attempts: Int)
    /// The operator holds the pipeline: no run starts until it is released.
    case held
}

/// A wait before or during a run.
package struct Wait: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        case network
        /// The connection is metered, or may be.
        case metered
        /// The machine runs on battery, or may.
        case power
        /// The quiet period of a burst of signals.
        case quiet
        /// `min-interval` after the last run.
        case interval
        /// The backoff of a failed run.
        case backoff
        /// `Retry-After` of the origin.
        case retryAfter = "retry-after"
        /// The request budget is spent.
        case budget
        /// This host's share of the splay.
        case splay
        /// A limit on concurrent requests is reached.
        case permit
        /// Other runs use the memory that the programs need for the answer.
        case memory
        /// The host is about to sleep.
        case sleep
        /// The file system does not answer for a path of the source.
        case fileSystem = "file-system"
    }

    package var reason: Reason
    /// The latest end of the wait; nil: not known.
    package var until: BootInstant?
    /// A sentence with details for people.
    package var detail: String?

    package init(_ reason: Reason, until: BootInstant? = nil, detail: String? = nil) {
        self.reason = reason
        self.until = until
        self.detail = detail
    }
}

/// The progress of a run.
package struct LoadProgress: Hashable, Sendable {
    /// Bytes of the answers' bodies received so far.
    package var bytes: UInt64
    /// The announced bytes of the answers so far; 0: not announced.
    package var announcedBytes: UInt64
    /// The loaded pages; also 0 for sources without pages.
    package var pages: Int
    /// The number of branches known so far; 0: there are none. `endedBranches` counts those that have ended.
    package var branches: Int
    package var endedBranches: Int

    package init(
        bytes: UInt64 = 0, announcedBytes: UInt64 = 0, pages: Int = 0, branches: Int = 0, endedBranches: Int = 0
    ) {
        self.bytes = bytes
        self.announcedBytes = announcedBytes
        self.pages = pages
        self.branches = branches
        self.endedBranches = endedBranches
    }

    /// The total bytes of the run; nil: not known. With pages or branches, each answer may lead to more requests.
    package var totalBytes: UInt64? {
        announcedBytes >= max(bytes, 1) && pages == 0 && branches == 0 ? announcedBytes : nil
    }
}

/// The freshness of the copy.
package enum Freshness: String, Hashable, Sendable {
    case fresh
    /// Older than `fresh-for`, and the next check is overdue or has failed; or past the expiry that the origin states,
    /// if the configuration honours it; or the source is known to have other content, which is held back.
    case stale
    /// Older than its `max-age`, published or withdrawn; or past the expiry that the content itself states.
    case expired
}

/// The next planned run, if no signal comes before.
package struct PlannedRun: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// `every` after the last successful check; sooner after a rejection.
        case timer
        case retry
        /// Received signals, which are held for now.
        case signals
    }

    package var at: BootInstant
    package var reason: Reason
}

/// The complete status of a pipeline at one moment. The activity is separate from the published copy.
package struct PipelineStatus: Hashable, Sendable {
    package var name: String
    package var activity: PipelineActivity
    /// The wait of the next or current run, whatever the activity is.
    package var waitsFor: Wait?
    /// The published generation; nil: there is none yet, or it is withdrawn.
    package var generation: CurrentGeneration?
    /// The withdrawn generation; nil: none is withdrawn.
    package var withdrawn: CurrentGeneration?
    /// Why the copy is not known, as a clause; nil: it is known.
    package var copyError: String?
    /// Nil while there is no copy.
    package var freshness: Freshness?
    /// The last check that succeeded, a 304 included, from which age counts.
    package var lastCheck: WallTime?
    /// When the data stops being fresh, as its origin states; nil: not known, or not configured.
    package var originExpires: BootInstant?
    /// When the copy exceeds its `max-age`, in the future or past; nil: never.
    package var expires: BootInstant?
    /// When the content expires by its own statement; nil: it states nothing.
    package var contentExpires: WallTime?
    /// The causes of the run in progress, otherwise of the last run.
    package var lastCauses: [RunCause]
    /// The number of signals that were ignored during the run in progress, otherwise during the last run.
    package var ignored = 0
    /// The run in progress.
    package var run: RunOrder?
    package var lastRun: RunSummary?
    package var next: PlannedRun?
    /// Nil if there is no budget.
    package var budget: BudgetUse?
    /// The ongoing failure, also while the next attempt runs or waits; nil: the last run that counts did not fail.
    package var failing: OngoingFailure?
    /// The content that a check rejected last, kept as the candidate.
    package var rejected: RejectedCandidate?
    /// The failing branches; nil: no branch fails.
    package var branches: BranchReport?
    /// The places at which a further page can be loaded; nil: there are none.
    package var more: PagesReport?
    /// Since when the operator holds the pipeline, also while a run ends; nil: it is not held.
    package var heldSince: WallTime?
    /// The mirror that was asked last, without its query; nil: there are none, or none was asked yet.
    package var mirror: String?

    /// The current generation, published or withdrawn.
    package var kept: CurrentGeneration? { generation ?? withdrawn }
}

/// A request budget, and its used part within the last period.
package struct BudgetUse: Hashable, Sendable {
    package var budget: RequestBudget
    package var used: Int
}

/// Counts failures since the last success, each kind by itself: the number of failures of an origin says nothing about
/// how long its content will be rejected.
struct FailureCounts: Hashable, Sendable {
    private(set) var failures = 0
    /// Content that did not match the files beside it.
    private(set) var mismatches = 0
    private(set) var rejections = 0
    /// The number of the current wait for other content; `due` is its end.
    private(set) var waits = 0
    var due: BootInstant?

    /// The content is still rejected. A check that came early, by a request or a signal, does not make the wait longer,
    /// since it says little about how long the content stays.
    mutating func waitsAgain(since start: BootInstant) {
        if due.map({ start >= $0 }) ?? true { waits += 1 }
    }

    /// - Returns: the number of failures of this kind.
    mutating func record(_ failure: RunFailure) -> Int {
        switch failure.rejection {
        case nil:
            failures += 1
            return failures
        case .brief:
            mismatches += 1
            return mismatches
        case .lasting, .passing:
            rejections += 1
            return rejections
        }
    }
}

/// A series of consecutive failures.
package struct OngoingFailure: Hashable, Sendable {
    /// The last failure.
    package var failure: RunFailure
    /// When the first failure was.
    package var since: BootInstant
    /// The number of runs that ended like the last one: failures of the origin and rejections are counted separately.
    package var attempts: Int
    var tally = FailureCounts()
    /// Whether the last run made a copy of which only a part is not new.
    package var isPartial: Bool
    /// The number of the last run that failed, and when it ended.
    package var run: UInt64
    package var ended: BootInstant

    package init(
        failure: RunFailure, since: BootInstant, attempts: Int, isPartial: Bool = false, run: UInt64 = 0,
        ended: BootInstant? = nil
    ) {
        self.failure = failure
        self.since = since
        self.attempts = attempts
        self.isPartial = isPartial
        self.run = run
        self.ended = ended ?? since
    }
}
