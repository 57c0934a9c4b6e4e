// The types of `io.freshet.Control` with the names of its description. Varlink messages and `freshetctl --json` have
// their JSON. Instants are microseconds since 1970 by the wall clock.

/// The state of a pipeline.
package enum PipelineState: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    /// The pipeline has not run yet.
    case idle
    case waiting, loading, loaded, failed
    /// The operator holds the pipeline: it does not run until it is released.
    case held
    /// A value that only a newer daemon knows.
    case unknown
}

/// The reason why a pipeline waits.
package enum WaitingReason: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    /// The pipeline waits until the network is reachable.
    case network
    /// The pipeline waits until a burst of signals has ended.
    case quiet
    /// The pipeline waits for the time of the next attempt.
    case backoff
    /// The pipeline has used up its budget of requests.
    case budget
    /// The pipeline waits for a permit, because other pipelines use all permits.
    case permit
    /// The pipeline waits for memory for the programs that process its response.
    case memory
    /// The machine is about to sleep; the pipeline waits until it is awake again.
    case sleep
    /// The pipeline waits until the file system answers.
    case filesystem
    /// The connection is metered, and the pipeline waits until it is not.
    case metered
    /// The machine runs on battery, and the pipeline waits for mains power.
    case power
    /// A value that only a newer daemon knows.
    case unknown
}

/// How old the published copy is.
package enum Freshness: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    case fresh
    /// The time of the next planned check, or the time that the origin set, has passed; or the origin has other
    /// content.
    case stale
    /// The copy is past its maximum age.
    case expired
    /// A value that only a newer daemon knows.
    case unknown
}

/// How a run ended.
package enum RunOutcome: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
    case changed, unchanged, failed, superseded, cancelled
    /// A value that only a newer daemon knows.
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
    /// The path of the published file.
    package var path: String
    package var mediaType: String?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// True if the source has other content that does not replace this generation, because of a rollback or a pin.
    package var behind: Bool?
    /// When the pipeline was pinned at this generation.
    package var pinnedSince: Int64?
    /// The link to the directory, if the copy has several files; `path` has all of them as one JSON object.
    package var directory: String?
    /// The publisher's comment in the verified signature.
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
    /// The number of the last firing, as in events; nil for a signal whose firings are not counted, such as a timer.
    package var number: Int64?
    /// How often it fired.
    package var count: Int64
    package var first: Int64
    package var last: Int64
    /// A text on the last firing, such as `default route via enp3s0`.
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

/// One run of a pipeline; without an outcome, the run is in progress.
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
    /// The kind of the failure, such as `connection` (docs/control.md).
    package var failureKind: String?
    /// The HTTP status of an answer without content, such as 404.
    package var httpStatus: Int64?
    /// The pause that the origin asked for (`Retry-After`).
    package var retryAfterUSec: Int64?
    /// The number of requests that the run made; only in the event of its end.
    package var requests: Int64?
    /// The number of body bytes that it received; only in the event of its end.
    package var bytes: Int64?
    /// The mirror that was asked last, without user information and query; nil: there are no mirrors, or not known.
    package var mirror: String?
    /// The failure for clients that may not read the published file; nil: they see no reason.
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

/// When and why a pipeline runs next without a request.
package struct NextRun: Codable, Hashable, Sendable {
    package var at: Int64
    /// Such as `every 15min` or `attempt 3`.
    package var reason: String

    package init(at: Int64, reason: String) {
        self.at = at
        self.reason = reason
    }
}

/// Why and since when a pipeline fails, and how many attempts have failed.
package struct FailureStatus: Codable, Hashable, Sendable {
    /// One sentence, with the remedy if there is one.
    package var message: String
    package var since: Int64
    package var attempts: Int64
    /// The message for clients that may not read the published file; nil: they see no message.
    @Unencoded package var publicMessage: String?
    /// The certificate for which a TLS connection was refused.
    package var certificate: CertificateStatus?

    package init(
        message: String, since: Int64, attempts: Int64, publicMessage: String? = nil,
        certificate: CertificateStatus? = nil
    ) {
        self.certificate = certificate
        self.message = message
        self.since = since
        self.attempts = attempts
        self.publicMessage = publicMessage
    }
}

/// The certificate for which a TLS connection was refused.
package struct CertificateStatus: Codable, Hashable, Sendable {
    /// The place in the chain: 0 is the certificate of the server itself, 1 that of its issuer.
    package var depth: Int64
    /// Such as `CN=example.com,O=Example`; may be empty.
    package var subject: String
    package var issuer: String
    /// From when to when it is valid.
    package var notBefore: Int64?
    package var notAfter: Int64?
    /// The host names and addresses for which it is valid, at most 16.
    package var names: [String]

    package init(
        depth: Int64 = 0, subject: String, issuer: String, notBefore: Int64? = nil, notAfter: Int64? = nil,
        names: [String] = []
    ) {
        self.depth = depth
        self.subject = subject
        self.issuer = issuer
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.names = names
    }
}

/// The candidate: the content that a check rejected last, which is kept.
package struct CandidateStatus: Codable, Hashable, Sendable {
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// Bytes.
    package var size: Int64
    package var rejectedAt: Int64
    /// The check's message.
    package var reason: String

    package init(digest: String, size: Int64, rejectedAt: Int64, reason: String) {
        self.digest = digest
        self.size = size
        self.rejectedAt = rejectedAt
        self.reason = reason
    }
}

/// The branches of a pipeline if some of them fail.
package struct BranchesStatus: Codable, Hashable, Sendable {
    package var total: Int64
    package var failed: Int64
    /// The first failing branches.
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
        /// The keys of the branch; empty: the pipeline's own pages.
        package var path: [String]
        /// How many pages are in the copy.
        package var pages: Int64

        package init(path: [String], pages: Int64) {
            self.path = path
            self.pages = pages
        }
    }

    /// The number of places.
    package var total: Int64
    /// The first places.
    package var places: [Place]

    package init(total: Int64, places: [Place]) {
        self.total = total
        self.places = places
    }
}

/// A branch that fails.
package struct BranchFailureStatus: Codable, Hashable, Sendable {
    /// The keys of the branch.
    package var path: [String]
    package var message: String
    package var since: Int64
    /// The number of consecutive runs in which the branch failed.
    package var attempts: Int64

    package init(path: [String], message: String, since: Int64, attempts: Int64) {
        self.path = path
        self.message = message
        self.since = since
        self.attempts = attempts
    }
}

/// A pending hook: it has not succeeded yet for the current generation.
package struct PendingHook: Codable, Hashable, Sendable {
    /// The command, as text; `hook NAME` for a hook of several pipelines.
    package var hook: String
    /// The name of a hook of several pipelines; nil for a hook of the pipeline's own, whose command is an absolute path,
    /// or `reload UNIT`.
    package var sharedName: String? { hook.hasPrefix("hook ") ? String(hook.dropFirst(5)) : nil }
    /// The line about a hook of several pipelines, from its file.
    package var description: String?
    /// The generation that the hook has to process.
    package var generation: Int64
    package var running: Bool
    /// How many attempts for this generation have failed.
    package var attempts: Int64
    /// The first failure since the hook last succeeded; nil: no failure.
    package var since: Int64?
    /// Why the last attempt failed, in one sentence.
    package var error: String?
    /// The next attempt; nil: the hook runs, or waits for a permit.
    package var next: Int64?
    /// What the hook waits for, besides the time of its next attempt; nil: nothing else.
    package var waits: String?

    package init(
        hook: String, description: String? = nil, generation: Int64, running: Bool, attempts: Int64 = 0,
        since: Int64? = nil,
        error: String? = nil, next: Int64? = nil, waits: String? = nil
    ) {
        self.hook = hook
        self.description = description
        self.generation = generation
        self.running = running
        self.attempts = attempts
        self.since = since
        self.error = error
        self.next = next
        self.waits = waits
    }
}

/// A budget of requests, and how much of it was used in the last period.
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

/// The status of a pipeline: its state, its current generation, its last run and its next run.
package struct PipelineStatus: Codable, Hashable, Sendable {
    package var name: String
    package var description: String?
    /// Where the data comes from, without user information and query.
    package var source: String
    package var state: PipelineState
    package var waitingFor: WaitingReason?
    /// When the wait ends, if known.
    package var waitingUntil: Int64?
    /// Details of the wait, in words.
    package var waitingDetail: String?
    /// Bytes that the run in progress has loaded.
    package var loadedBytes: Int64?
    /// Bytes that the run in progress will load in total; nil: unknown.
    package var totalBytes: Int64?
    /// Pages that the run in progress has loaded; nil if the pipeline has no pages.
    package var loadedPages: Int64?
    /// Branches of the run in progress that have ended; nil: the pipeline has no branches.
    package var endedBranches: Int64?
    /// Branches of the run in progress that are known; nil: the pipeline has no branches.
    package var knownBranches: Int64?
    package var freshness: Freshness?
    /// The current generation, which readers see.
    package var generation: GenerationStatus?
    /// The last successful check, also if the content had not changed.
    package var lastCheck: Int64?
    /// When the data stops being fresh, as set by the origin.
    package var originExpires: Int64?
    /// When the copy is past its maximum age.
    package var expires: Int64?
    /// When the content expires, as stated in the content itself.
    package var contentExpires: Int64?
    package var lastRun: RunStatus?
    package var lastCauses: [CauseStatus]
    /// Signals that were ignored during the run in progress, otherwise during the last run; nil: none.
    package var ignoredSignals: Int64?
    package var nextRun: NextRun?
    package var failure: FailureStatus?
    /// The content that a check rejected last; nil: no candidate is kept.
    package var candidate: CandidateStatus?
    package var budget: BudgetStatus?
    /// The failing branches; nil: no branch fails.
    package var branches: BranchesStatus?
    /// Where further pages can be loaded; nil: nowhere.
    package var more: MorePages?
    package var needsNetwork: Bool
    /// The network path to the source, or why the source is not reachable.
    package var path: String?
    /// The target to which there is no route: an address, or ``internet``. Nil: there is one, or it is not reachable for
    /// another reason.
    package var noRouteTo: String?
    /// Nil: the pipeline has no parameters.
    package var parameters: [ParameterStatus]?
    /// Pending hooks; nil: no pending hooks.
    package var hooks: [PendingHook]?
    /// The copy that readers do not see because it is past its maximum age; nil: no copy is withdrawn.
    package var withdrawn: WithdrawnCopy?
    /// When the operator held the pipeline, also while a run still ends; nil: the pipeline is not held.
    package var heldSince: Int64?
    /// The mirror that is asked now, or was asked last; nil: there are no mirrors, or none was asked yet.
    package var mirror: String?
    /// Nil: the pipeline is not shared.
    package var fleet: FleetPart?

    /// Why the copy is not known, as a clause: the index cannot be written now. Nil: it is known.
    package var copyError: String?

    /// The value of ``noRouteTo`` for every target that is not a single address.
    package static let internet = "internet"

    package init(
        name: String, description: String? = nil, source: String, state: PipelineState,
        waitingFor: WaitingReason? = nil, waitingUntil: Int64? = nil, waitingDetail: String? = nil,
        loadedBytes: Int64? = nil, totalBytes: Int64? = nil, loadedPages: Int64? = nil, endedBranches: Int64? = nil,
        knownBranches: Int64? = nil,
        freshness: Freshness? = nil, generation: GenerationStatus? = nil, lastCheck: Int64? = nil,
        originExpires: Int64? = nil, expires: Int64? = nil, contentExpires: Int64? = nil,
        lastRun: RunStatus? = nil, lastCauses: [CauseStatus] = [], ignoredSignals: Int64? = nil,
        nextRun: NextRun? = nil,
        failure: FailureStatus? = nil, candidate: CandidateStatus? = nil, budget: BudgetStatus? = nil,
        branches: BranchesStatus? = nil, more: MorePages? = nil, needsNetwork: Bool = false, path: String? = nil,
        parameters: [ParameterStatus]? = nil, hooks: [PendingHook]? = nil, withdrawn: WithdrawnCopy? = nil,
        heldSince: Int64? = nil, mirror: String? = nil
    ) {
        self.mirror = mirror
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
        self.ignoredSignals = ignoredSignals
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
