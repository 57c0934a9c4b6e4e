// The types of `io.freshet.Control` as its description has them, name for name: their JSON is what crosses the socket
// and what `freshetctl --json` prints. Instants are microseconds since 1970 by the wall clock.

/// What a pipeline is doing.
package enum PipelineState: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    /// It never ran.
    case idle
    case waiting, loading, loaded, failed
    /// The operator stopped it.
    case held
    /// Of a newer daemon.
    case unknown
}

/// What a waiting pipeline waits for.
package enum WaitingReason: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    /// That the network is reachable.
    case network
    /// That a storm of signals calms down.
    case quiet
    /// The time of the next attempt.
    case backoff
    /// Room in its budget of requests.
    case budget
    /// Its turn among other pipelines.
    case slot
    /// Memory for the programs that work on its answer.
    case memory
    /// That the machine, which is about to sleep, is awake again.
    case sleep
    /// That the file system answers.
    case filesystem
    /// Of a newer daemon.
    case unknown
}

/// How old the offered copy is.
package enum Freshness: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    case fresh
    /// Its next planned check has passed, or its origin's word for how long it is fresh; or the origin has other content.
    case stale
    /// It is past its maximum age.
    case expired
    /// Of a newer daemon.
    case unknown
}

/// How a run ended.
package enum RunOutcome: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    case changed, unchanged, failed, superseded, cancelled
    /// Of a newer daemon.
    case unknown
}

/// A committed copy.
package struct GenerationStatus: Codable, Hashable, Sendable {
    /// Numbered per pipeline from 1.
    package var number: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    package var committedAt: Int64
    /// The path that people read.
    package var path: String
    package var mediaType: String?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// True if the source is known to have other content, which does not replace this: it was rolled back to, or is pinned.
    package var behind: Bool?
    /// Since when it is pinned.
    package var pinnedSince: Int64?
    /// Of several files: the link to the directory that has them; `path` has them all as one JSON object.
    package var directory: String?
    /// What its publisher says of it in a signature that was verified.
    package var comment: String?

    package init(
        number: Int64, size: Int64, digest: String, committedAt: Int64, path: String, mediaType: String? = nil,
        truncated: Bool? = nil, behind: Bool? = nil, pinnedSince: Int64? = nil
    ) {
        self.behind = behind
        self.pinnedSince = pinnedSince
        self.number = number
        self.size = size
        self.digest = digest
        self.committedAt = committedAt
        self.path = path
        self.mediaType = mediaType
        self.truncated = truncated
    }
}

/// One signal's share in a run.
package struct CauseStatus: Codable, Hashable, Sendable {
    /// The signal's name, such as `network`.
    package var signal: String
    /// The number of the last firing, as events have it; nil for what counts none, such as a timer.
    package var number: Int64?
    /// How often it fired.
    package var count: Int64
    package var first: Int64
    package var last: Int64
    /// For people, such as `default route via enp3s0`; of the last firing.
    package var detail: String?

    package init(
        signal: String, number: Int64? = nil, count: Int64 = 1, first: Int64, last: Int64, detail: String? = nil
    ) {
        self.signal = signal
        self.number = number
        self.count = count
        self.first = first
        self.last = last
        self.detail = detail
    }
}

/// One execution of a pipeline; without an outcome it is under way.
package struct RunStatus: Codable, Hashable, Sendable {
    package var number: Int64
    package var started: Int64
    package var causes: [CauseStatus]
    package var durationUSec: Int64?
    package var outcome: RunOutcome?
    /// The generation that it committed or confirmed.
    package var generation: Int64?
    /// Why it failed, in one sentence.
    package var failure: String?
    /// The same for those who may not read the published file; nil: nothing of it is for them.
    @Unencoded package var publicFailure: String?

    package init(
        number: Int64, started: Int64, causes: [CauseStatus] = [], durationUSec: Int64? = nil,
        outcome: RunOutcome? = nil, generation: Int64? = nil, failure: String? = nil, publicFailure: String? = nil
    ) {
        self.publicFailure = publicFailure
        self.number = number
        self.started = started
        self.causes = causes
        self.durationUSec = durationUSec
        self.outcome = outcome
        self.generation = generation
        self.failure = failure
    }
}

/// When a pipeline runs next by itself, and why.
package struct NextRun: Codable, Hashable, Sendable {
    package var at: Int64
    /// Such as `every 15min` or `attempt 3`.
    package var reason: String

    package init(at: Int64, reason: String) {
        self.at = at
        self.reason = reason
    }
}

/// Why a pipeline fails, since when, and how often it was tried.
package struct FailureStatus: Codable, Hashable, Sendable {
    /// One sentence that names the remedy where there is one.
    package var message: String
    package var since: Int64
    package var attempts: Int64
    /// The message for those who may not read the published file; nil: nothing of it is for them.
    @Unencoded package var publicMessage: String?

    package init(message: String, since: Int64, attempts: Int64, publicMessage: String? = nil) {
        self.message = message
        self.since = since
        self.attempts = attempts
        self.publicMessage = publicMessage
    }
}

/// What a check refused last, kept aside.
package struct CandidateStatus: Codable, Hashable, Sendable {
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// Bytes.
    package var size: Int64
    package var refusedAt: Int64
    /// The check's words.
    package var reason: String

    package init(digest: String, size: Int64, refusedAt: Int64, reason: String) {
        self.digest = digest
        self.size = size
        self.refusedAt = refusedAt
        self.reason = reason
    }
}

/// The branches of a pipeline of which some fail.
package struct BranchesStatus: Codable, Hashable, Sendable {
    package var total: Int64
    package var failed: Int64
    /// The first of those that fail.
    package var failing: [BranchFailureStatus]

    package init(total: Int64, failed: Int64, failing: [BranchFailureStatus]) {
        self.total = total
        self.failed = failed
        self.failing = failing
    }
}

/// Where further pages of a pipeline can be loaded.
package struct MorePages: Codable, Hashable, Sendable {
    package struct Place: Codable, Hashable, Sendable {
        /// The keys that lead to the branch; none: the pipeline's own pages.
        package var path: [String]
        /// How many pages are in the copy.
        package var pages: Int64

        package init(path: [String], pages: Int64) {
            self.path = path
            self.pages = pages
        }
    }

    /// At how many places.
    package var total: Int64
    /// The first of them.
    package var places: [Place]

    package init(total: Int64, places: [Place]) {
        self.total = total
        self.places = places
    }
}

/// A branch that fails.
package struct BranchFailureStatus: Codable, Hashable, Sendable {
    /// The keys that lead to it.
    package var path: [String]
    package var message: String
    package var since: Int64
    /// In how many runs in a row.
    package var attempts: Int64

    package init(path: [String], message: String, since: Int64, attempts: Int64) {
        self.path = path
        self.message = message
        self.since = since
        self.attempts = attempts
    }
}

/// A hook that is owed: it has not succeeded yet for what readers see.
package struct PendingHook: Codable, Hashable, Sendable {
    /// The command, for people.
    package var hook: String
    /// What it is owed for.
    package var generation: Int64
    package var running: Bool
    /// How many attempts for this generation have failed.
    package var attempts: Int64
    /// When the first attempt failed since it last succeeded; nil: none has.
    package var since: Int64?
    /// Why the last attempt failed, in one sentence.
    package var error: String?
    /// The next attempt; nil: it runs, or waits for its turn.
    package var next: Int64?

    package init(
        hook: String, generation: Int64, running: Bool, attempts: Int64 = 0, since: Int64? = nil,
        error: String? = nil, next: Int64? = nil
    ) {
        self.hook = hook
        self.generation = generation
        self.running = running
        self.attempts = attempts
        self.since = since
        self.error = error
        self.next = next
    }
}

/// A budget of requests, and what was spent of it in the last period.
package struct BudgetStatus: Codable, Hashable, Sendable {
    package var limit: Int64
    package var periodUSec: Int64
    package var used: Int64

    package init(limit: Int64, periodUSec: Int64, used: Int64) {
        self.limit = limit
        self.periodUSec = periodUSec
        self.used = used
    }
}

/// A pipeline: what it does, what it offers, what it did last and does next.
package struct PipelineStatus: Codable, Hashable, Sendable {
    package var name: String
    package var description: String?
    /// Where the data comes from, without user information and query.
    package var source: String
    package var state: PipelineState
    package var waitingFor: WaitingReason?
    /// Until when it waits, if that is known.
    package var waitingUntil: Int64?
    /// More of what it waits for, in words.
    package var waitingDetail: String?
    /// Bytes of the run under way so far.
    package var loadedBytes: Int64?
    /// How many there will be; nil: nobody knows.
    package var totalBytes: Int64?
    /// Pages of the run under way so far; nil if it has none.
    package var loadedPages: Int64?
    /// Branches of the run under way that have ended, and those known so far; nil: it has none.
    package var endedBranches: Int64?
    package var knownBranches: Int64?
    package var freshness: Freshness?
    /// What it offers to readers.
    package var generation: GenerationStatus?
    /// The last successful check, one that found nothing new included.
    package var lastCheck: Int64?
    /// When the data stops being fresh by its origin's word.
    package var originExpires: Int64?
    /// When the copy is past its maximum age.
    package var expires: Int64?
    /// When the content expires by what the content itself states.
    package var contentExpires: Int64?
    package var lastRun: RunStatus?
    package var lastCauses: [CauseStatus]
    package var nextRun: NextRun?
    package var failure: FailureStatus?
    /// What a check refused last; nil: nothing is kept aside.
    package var candidate: CandidateStatus?
    package var budget: BudgetStatus?
    /// Nil unless branches fail.
    package var branches: BranchesStatus?
    /// Nil: nothing more can be loaded anywhere.
    package var more: MorePages?
    package var needsNetwork: Bool
    /// How the network leads to the source, or why it does not.
    package var path: String?
    /// Nil if it has none.
    package var parameters: [ParameterStatus]?
    /// Hooks that are owed; nil: none.
    package var hooks: [PendingHook]?
    /// What readers would see if it were not too old; nil: nothing is withdrawn.
    package var withdrawn: WithdrawnCopy?
    /// Since when the operator holds it, also while a run ends; nil: nobody does.
    package var heldSince: Int64?

    package init(
        name: String, description: String? = nil, source: String, state: PipelineState,
        waitingFor: WaitingReason? = nil, waitingUntil: Int64? = nil, waitingDetail: String? = nil,
        loadedBytes: Int64? = nil, totalBytes: Int64? = nil, loadedPages: Int64? = nil, endedBranches: Int64? = nil,
        knownBranches: Int64? = nil,
        freshness: Freshness? = nil, generation: GenerationStatus? = nil, lastCheck: Int64? = nil,
        originExpires: Int64? = nil, expires: Int64? = nil, contentExpires: Int64? = nil,
        lastRun: RunStatus? = nil, lastCauses: [CauseStatus] = [], nextRun: NextRun? = nil,
        failure: FailureStatus? = nil, candidate: CandidateStatus? = nil, budget: BudgetStatus? = nil,
        branches: BranchesStatus? = nil, more: MorePages? = nil, needsNetwork: Bool = false, path: String? = nil,
        parameters: [ParameterStatus]? = nil, hooks: [PendingHook]? = nil, withdrawn: WithdrawnCopy? = nil,
        heldSince: Int64? = nil
    ) {
        self.heldSince = heldSince
        self.withdrawn = withdrawn
        self.hooks = hooks
        self.name = name
        self.description = description
        self.source = source
        self.state = state
        self.waitingFor = waitingFor
        self.waitingUntil = waitingUntil
        self.waitingDetail = waitingDetail
        self.loadedBytes = loadedBytes
        self.totalBytes = totalBytes
        self.loadedPages = loadedPages
        self.endedBranches = endedBranches
        self.knownBranches = knownBranches
        self.freshness = freshness
        self.generation = generation
        self.lastCheck = lastCheck
        self.originExpires = originExpires
        self.expires = expires
        self.contentExpires = contentExpires
        self.lastRun = lastRun
        self.lastCauses = lastCauses
        self.nextRun = nextRun
        self.failure = failure
        self.candidate = candidate
        self.budget = budget
        self.branches = branches
        self.more = more
        self.needsNetwork = needsNetwork
        self.path = path
        self.parameters = parameters
    }
}
