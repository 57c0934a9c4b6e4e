/// What a pipeline is doing.
package enum PipelineActivity: Hashable, Sendable {
    /// It never ran.
    case idle
    case waiting(Wait)
    case loading(LoadProgress)
    case loaded
    /// The last run failed. What is offered stays; see ``PipelineStatus/generation``.
    case failed(RunFailure, since: ContinuousClock.Instant, attempts: Int)
    /// The operator holds it: nothing runs until it is released.
    case held
}

/// Something that a run waits for.
package struct Wait: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        case network
        /// More signals may come: a storm.
        case quiet
        /// `min-interval` since the last run.
        case interval
        /// A failed run's time to wait.
        case backOff = "back-off"
        /// The origin asked to be left alone (`Retry-After`).
        case retryAfter = "retry-after"
        /// Its budget of requests is spent.
        case budget
        /// This host's share of the splay.
        case splay
        /// Too many pipelines run at once.
        case slot
        /// Others have the memory that programs need to work on its answer.
        case memory
        /// The machine is about to sleep.
        case sleep
        /// The file system does not answer for a path of the source.
        case fileSystem = "file-system"
    }

    package var reason: Reason
    /// When it ends at the latest; nil: not known.
    package var until: ContinuousClock.Instant?
    /// A sentence for people, where the reason does not say it all.
    package var detail: String?

    package init(_ reason: Reason, until: ContinuousClock.Instant? = nil, detail: String? = nil) {
        self.reason = reason
        self.until = until
        self.detail = detail
    }
}

/// How far a run has come.
package struct LoadProgress: Hashable, Sendable {
    /// Bytes of the answers' bodies received so far.
    package var bytes: UInt64
    /// Bytes that the answers so far said they have; 0: they did not say.
    package var announcedBytes: UInt64
    /// Pages that are loaded; 0 also for sources without pages.
    package var pages: Int
    /// Branches known so far, and those of them that have ended; 0: there are none.
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

    /// The bytes that the run takes in all; nil: nobody knows. Of pages and branches more may come with each answer.
    package var totalBytes: UInt64? {
        announcedBytes >= max(bytes, 1) && pages == 0 && branches == 0 ? announcedBytes : nil
    }
}

/// How good the offered copy still is.
package enum Freshness: String, Hashable, Sendable {
    case fresh
    /// Older than `fresh-for`, and a check that should have been is not: it is overdue or has failed. Or past its expiry
    /// by its origin's word, if that is heard. Or the source is known to have other content, which is held back.
    case stale
    /// Older than its `max-age`, and offered still or withdrawn; or past the time at which its content expires by what the
    /// content itself states.
    case expired
}

/// The next run that is planned, if nothing is heard before.
package struct PlannedRun: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// `every` since the last successful check; sooner since one that found what is refused.
        case timer
        case retry
        /// Signals were heard and are held for now.
        case signals
    }

    package var at: ContinuousClock.Instant
    package var reason: Reason
}

/// All that is to be known of a pipeline at one moment. What goes on stands apart from what is offered to readers.
package struct PipelineStatus: Hashable, Sendable {
    package var name: String
    package var activity: PipelineActivity
    /// What a run waits for, whatever the activity is called.
    package var waitsFor: Wait?
    /// What readers see; nil: nothing yet, or it is withdrawn.
    package var generation: CurrentGeneration?
    /// What readers would see if it were not too old; nil: nothing is withdrawn.
    package var withdrawn: CurrentGeneration?
    /// Nil while nothing is offered.
    package var freshness: Freshness?
    /// The last check that succeeded, a 304 included, from which age counts: wall-clock microseconds since 1970.
    package var lastCheck: Int64?
    /// When the data stops being fresh by its origin's word; nil: not known, or not asked for.
    package var originExpires: ContinuousClock.Instant?
    /// When the copy is older than its `max-age`, or since when; nil: never.
    package var expires: ContinuousClock.Instant?
    /// When its content expires by what the content itself states: wall-clock microseconds since 1970; nil: it states nothing.
    package var contentExpires: Int64?
    /// The causes of the run under way, else of the last one.
    package var lastCauses: [RunCause]
    /// The run under way.
    package var run: RunOrder?
    package var lastRun: RunSummary?
    package var next: PlannedRun?
    /// Nil if it has no budget.
    package var budget: BudgetUse?
    /// Why it fails, also while the next attempt runs or waits; nil: its last run that counts did not fail.
    package var failing: OngoingFailure?
    /// What a check refused last, kept aside for a look.
    package var refused: RejectedSnapshot?
    /// What is the matter with its branches; nil: it has none, or nothing.
    package var branches: BranchReport?
    /// Where a further page can be loaded; nil: nowhere.
    package var more: PagesReport?
    /// Since when the operator holds it, also while a run ends: wall-clock microseconds since 1970; nil: nobody does.
    package var heldSince: Int64?

    /// What is kept as the copy, whether readers see it or not.
    package var kept: CurrentGeneration? { generation ?? withdrawn }
}

/// A budget of requests, and what was spent of it within the last period.
package struct BudgetUse: Hashable, Sendable {
    package var budget: RequestBudget
    package var used: Int
}

/// What has failed since all was well, each kind counted for itself: how often an origin failed says nothing of how long
/// what it has is refused.
struct FailureCounts: Hashable, Sendable {
    private(set) var failures = 0
    /// What did not fit what lies beside it.
    private(set) var mismatches = 0
    private(set) var refusals = 0
    /// Which wait for another content it is, and when that one is over.
    private(set) var waits = 0
    var due: ContinuousClock.Instant?

    /// What was refused is refused still. A check that came sooner, since somebody asked or a signal fired, tells little of
    /// how long that will be so, and makes the wait no longer.
    ///
    /// - Parameter start: when that check began.
    mutating func waitsAgain(since start: ContinuousClock.Instant) {
        if due.map({ start >= $0 }) ?? true { waits += 1 }
    }

    /// - Returns: how many of this kind there were.
    mutating func note(_ failure: RunFailure) -> Int {
        switch failure.refusal {
        case nil:
            failures += 1
            return failures
        case .brief:
            mismatches += 1
            return mismatches
        case .lasting, .passing:
            refusals += 1
            return refusals
        }
    }
}

/// Failures in a row.
package struct OngoingFailure: Hashable, Sendable {
    /// The last one.
    package var failure: RunFailure
    /// When the first one was.
    package var since: ContinuousClock.Instant
    /// How many runs ended like the last one: the origin's failures and what checks refuse are counted apart.
    package var attempts: Int
    var tally = FailureCounts()
    /// The last run made a copy, of which only a part is not new.
    package var isPartial: Bool
    /// The number of the last run that failed, and when it ended.
    package var run: UInt64
    package var ended: ContinuousClock.Instant

    package init(
        failure: RunFailure, since: ContinuousClock.Instant, attempts: Int, isPartial: Bool = false, run: UInt64 = 0,
        ended: ContinuousClock.Instant? = nil
    ) {
        self.failure = failure
        self.since = since
        self.attempts = attempts
        self.isPartial = isPartial
        self.run = run
        self.ended = ended ?? since
    }
}
