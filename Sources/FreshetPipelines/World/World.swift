/// What a conditional request needs of the answer before (RFC 9110, 8.8).
package struct Validators: Hashable, Sendable {
    /// The `ETag` field as it came, with its quotes and `W/`.
    package var entityTag: String?
    /// The `Last-Modified` field as it came.
    package var lastModified: String?

    package init(entityTag: String? = nil, lastModified: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    package var isEmpty: Bool { entityTag == nil && lastModified == nil }
}

/// One request to a source on behalf of a run.
package struct FetchRequest: Sendable {
    package var source: SourceDefinition
    /// What the copy at hand was, if it is whole: the request becomes conditional.
    package var validators: Validators?
    /// The most bytes that are taken.
    package var maxBytes: UInt64
    /// The network epoch of the run: only connections of this epoch are used.
    package var epoch: UInt64
    /// Bytes of the body received so far; called often, on the emitter's thread, and must not block.
    package var progress: @Sendable (UInt64) -> Void
    /// Told once how many bytes the body has, if its source says so; on the emitter's thread, and must not block.
    package var announced: @Sendable (UInt64) -> Void
    /// Told of each request that is made on behalf of it, redirects included; on the emitter's thread, and must not
    /// block.
    package var asked: @Sendable () -> Void
    /// Says of a media type why no answer of it is acceptable, so that its body need not be taken; nil: any is.
    package var refusal: (@Sendable (_ mediaType: String?) -> RunFailure?)?
    /// Whether a digest or a signature of the content is checked, so that a body that was cut is rejected in any case.
    package var isProven = false
    /// Where the body may go if it is long; nil: it is wanted in memory.
    package var keeper: (any BodyStoring)?
    /// The key of the pipeline whose run asks; nil: none.
    package var pipeline: UInt64?
    /// Called with true when the file system does not answer for the path for a while, then with false when the access
    /// has ended; from any thread, and must not block.
    package var waitsForFile: @Sendable (_ path: String, _ isWaiting: Bool) -> Void = { _, _ in }

    package init(
        source: SourceDefinition, validators: Validators? = nil, maxBytes: UInt64 = CheckRules.defaultMaxBytes,
        epoch: UInt64 = 0, progress: @escaping @Sendable (UInt64) -> Void = { _ in },
        announced: @escaping @Sendable (UInt64) -> Void = { _ in },
        asked: @escaping @Sendable () -> Void = {}, refusal: (@Sendable (String?) -> RunFailure?)? = nil,
        keeper: (any BodyStoring)? = nil
    ) {
        self.refusal = refusal
        self.keeper = keeper
        self.source = source
        self.validators = validators
        self.maxBytes = maxBytes
        self.epoch = epoch
        self.progress = progress
        self.announced = announced
        self.asked = asked
    }
}

/// What a source answered.
package enum FetchResult: Sendable {
    /// The copy at hand is the present one (304). Validators that came along replace the ones before, and so does what
    /// it says of how much longer the data is fresh.
    case notModified(Validators?, freshFor: Duration? = nil)
    case content(FetchedContent)
}

/// A body and what was said about it.
package struct FetchedContent: Sendable {
    /// Kept aside only if the request said where. Whoever has it then ends it.
    package var body: FetchedBody
    /// The media type without parameters, in lower case, such as `application/json`; nil: none was said.
    package var mediaType: String?
    package var validators: Validators
    /// How much longer it is fresh by its origin's word, from now on; zero: not any more; nil: nothing was said.
    package var freshFor: Duration?
    /// The values of the `Link` fields of the answer, in their order, as they came (RFC 8288); an emitter hands on a
    /// bounded number of them.
    package var links: [String]
    /// The URL that answered, after redirects, without user information and fragment; nil: it was no URL.
    package var location: String?

    package init(
        bytes: [UInt8], mediaType: String? = nil, validators: Validators = Validators(), freshFor: Duration? = nil,
        links: [String] = [], location: String? = nil
    ) {
        self.init(
            .bytes(bytes), mediaType: mediaType, validators: validators, freshFor: freshFor, links: links,
            location: location)
    }

    package init(
        _ body: FetchedBody, mediaType: String? = nil, validators: Validators = Validators(),
        freshFor: Duration? = nil, links: [String] = [], location: String? = nil
    ) {
        self.body = body
        self.mediaType = mediaType
        self.validators = validators
        self.links = links
        self.location = location
        self.freshFor = freshFor
    }
}

/// Asks sources for data: HTTP, commands, files.
///
/// Cancelling the task ends the request: when `fetch` has thrown, its socket is closed, its child process gone.
package protocol Fetching: Sendable {
    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult
    /// The URL that a reference means which was found at another URL (RFC 3986, 5.2), taken apart as those who ask for it
    /// do; nil: it is none of HTTP. User information and fragment are left out.
    func resolve(_ reference: String, against base: String) -> WebAddress?
}

/// An absolute URL of HTTP, as far as the engine has to know it.
package struct WebAddress: Hashable, Sendable {
    package var url: String
    /// Without port and without the brackets of an IPv6 address.
    package var host: String
    /// Scheme, host and port as text, such as `https://example.com:443` (RFC 6454): equal for what is one origin.
    package var origin: String

    package init(url: String, host: String, origin: String) {
        self.url = url
        self.host = host
        self.origin = origin
    }
}

/// Why a fetch ended without a result.
package enum FetchError: Error, Hashable, Sendable {
    case cancelled
    case failed(RunFailure)
}

/// A generation as readers see it.
package struct CurrentGeneration: Hashable, Sendable {
    /// Numbered per pipeline from 1.
    package var number: UInt64
    /// Bytes.
    package var size: UInt64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// Wall-clock time of the commit: microseconds since 1970-01-01 UTC.
    package var committedAt: Int64
    /// The path that people read.
    package var path: String
    /// The source had more than the limit on its pages allowed.
    package var truncated: Bool
    /// The source is known to have other content than this, which stays: it was rolled back to, or is pinned.
    package var isBehind = false
    /// Since when it is pinned: wall-clock microseconds since 1970; nil: it is not.
    package var pinnedSince: Int64?
    /// Of two that are told of one pipeline the one with the higher turn is the newer.
    package var turn: UInt64 = 0
    /// Of several files: the link to the directory that has them.
    package var directory: String?
    /// Since when readers do not find it, since it is too old: wall-clock microseconds since 1970; nil: they do.
    package var withdrawnSince: Int64?
    /// When its file was written: wall-clock microseconds since 1970. Of one that was rolled back to it is when that was.
    package var writtenAt: Int64?
    /// When the content expires by what the content itself states: wall-clock microseconds since 1970; nil: it states nothing.
    package var contentExpires: Int64?
    /// What its publisher says of it in a signature that was verified; nil: nothing that is known.
    package var comment: String?

    package init(
        number: UInt64, size: UInt64, digest: String, committedAt: Int64, path: String, truncated: Bool = false
    ) {
        self.truncated = truncated
        self.number = number
        self.size = size
        self.digest = digest
        self.committedAt = committedAt
        self.path = path
    }

    /// Nothing keeps it from being replaced any more.
    package mutating func release() {
        isBehind = false
        pinnedSince = nil
    }
}

/// What is remembered of a pipeline across restarts of the daemon.
package struct PersistentState: Hashable, Sendable {
    package var generation: CurrentGeneration?
    /// The last check that succeeded, a 304 included: wall-clock microseconds since 1970.
    package var lastCheck: Int64?
    /// When that which was checked stops being fresh by its origin's word: wall-clock microseconds since 1970; nil: not
    /// known, or not asked for.
    package var expires: Int64?
    /// Until when the origin asked to be left alone: wall-clock microseconds since 1970.
    package var retryAfter: Int64?
    /// The number of the last run.
    package var lastRun: UInt64
    /// That run; nil: nothing more is known of it.
    package var lastRunRecord: RunRecord?
    /// The binding (``Snapshot/binding``) of the copy at hand; nil: not known. With another one the last check says
    /// nothing about what is configured now.
    package var binding: String?
    /// What was spent of its budget.
    package var requests: [RequestBurst]
    /// What is set of its parameters, by their names.
    package var parameters: [String: String]
    /// Its sets of pages that may be continued.
    package var pages: [StoredPagesState]
    /// What a check refused last, if it is kept aside.
    package var refused: RejectedSnapshot?
    /// What the publisher said of the last content that was signed.
    package var signed: SignedComment?
    /// Since when the operator holds it: wall-clock microseconds since 1970; nil: nobody does.
    package var heldSince: Int64?
    /// The checks were of another configuration: they say how old the copy is, and nothing of what is configured now.
    package var isOfAnother = false

    package init(
        generation: CurrentGeneration? = nil, lastCheck: Int64? = nil, expires: Int64? = nil, retryAfter: Int64? = nil,
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

/// Requests that were made close together: the first and the last, as wall-clock microseconds since 1970.
package struct RequestBurst: Hashable, Sendable {
    package var first: Int64
    package var last: Int64
    package var count: Int

    package init(first: Int64, last: Int64, count: Int) {
        self.first = first
        self.last = last
        self.count = count
    }
}

/// What a run hands to the store.
package struct Snapshot: Sendable {
    package var body: FetchedBody
    /// Bound to the URL and to the content: they are used again only while both still hold.
    package var validators: Validators
    /// What the validators are bound to besides the content: the URL, and the transform that made the snapshot.
    package var binding: String
    /// The source had more than the limit on its pages allowed.
    package var truncated: Bool
    /// When it stops being fresh by its origin's word: wall-clock microseconds since 1970; nil: not known, or not asked
    /// for.
    package var expires: Int64?
    /// When the content expires by what the content itself states: wall-clock microseconds since 1970; nil: it states nothing.
    package var contentExpires: Int64?
    /// All of the source was asked for. Else it is a check of nothing: when the last one was, and what the origin asked
    /// for then, stays.
    package var isCheck: Bool

    package init(
        _ body: FetchedBody, validators: Validators, binding: String, truncated: Bool = false, expires: Int64? = nil,
        contentExpires: Int64? = nil, isCheck: Bool = true
    ) {
        self.contentExpires = contentExpires
        self.isCheck = isCheck
        self.body = body
        self.validators = validators
        self.binding = binding
        self.truncated = truncated
        self.expires = expires
    }
}

/// What a commit came to.
package enum CommitResult: Hashable, Sendable {
    case changed(CurrentGeneration)
    /// The same content as before: no generation, no rename.
    case unchanged(CurrentGeneration)
}

/// What came of withdrawing a copy from readers, or of putting it back.
package enum WithdrawalResult: Hashable, Sendable {
    case done(CurrentGeneration)
    /// Readers do not find it any more, and since it was not whole, nothing of it is kept.
    case damaged(CurrentGeneration)
    /// Nothing is kept that is whole.
    case nothing
    /// It was to be left as it is.
    case left
    case failed
}

/// Content that a check refused, kept aside for a look.
package struct RejectedSnapshot: Hashable, Sendable {
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// Bytes.
    package var size: UInt64
    /// When it was refused last: wall-clock microseconds since 1970.
    package var refusedAt: Int64
    /// From then on it is not kept any more: wall-clock microseconds since 1970.
    package var keptUntil: Int64
    /// The check's words.
    package var reason: String

    package init(digest: String, size: UInt64, refusedAt: Int64, keptUntil: Int64, reason: String) {
        self.digest = digest
        self.size = size
        self.refusedAt = refusedAt
        self.keptUntil = keptUntil
        self.reason = reason
    }
}

/// What became of a snapshot that a check refused.
package enum RejectionResult: Hashable, Sendable {
    /// It is kept aside, instead of what was refused before.
    case kept(RejectedSnapshot)
    /// The operator has accepted this very content before: it was committed, whatever the check says.
    case committed(CommitResult)
    /// Nothing is kept of it: it is the copy that is there, of this digest.
    case isCopy(digest: String)
    /// It could not be kept.
    case dropped
}

/// A line of a pipeline's memory: one run.
package struct RunRecord: Hashable, Sendable {
    package var pipeline: String
    package var run: UInt64
    /// The causes as text, such as `network (2), timer`.
    package var causes: String
    /// Wall-clock microseconds since 1970.
    package var started: Int64
    /// Wall-clock microseconds since 1970.
    package var ended: Int64
    /// `changed`, `unchanged`, `failed`, `superseded`, `cancelled`.
    package var outcome: String
    package var error: String?
    package var generation: UInt64?

    package init(
        pipeline: String, run: UInt64, causes: String, started: Int64, ended: Int64, outcome: String,
        error: String? = nil, generation: UInt64? = nil
    ) {
        self.pipeline = pipeline
        self.run = run
        self.causes = causes
        self.started = started
        self.ended = ended
        self.outcome = outcome
        self.error = error
        self.generation = generation
    }
}

/// The local cache, as the engine sees it. Its methods may take as long as a disk does; they suspend and never block.
package protocol SnapshotStore: Sendable {
    func remembered(_ pipeline: String) async -> PersistentState
    /// The validators for a conditional request, if the copy at hand is whole and belongs to this binding.
    func validators(_ pipeline: String, binding: String) async -> Validators?
    /// Keeps long bodies for the snapshots of a pipeline; nil: they are all wanted in memory.
    func keeper(of definition: PipelineDefinition) -> (any BodyStoring)?
    /// The copy that readers see, whole; nil: there is none. For what is compared with it: one that has more than
    /// ``CheckRules/maxBytes`` is none either.
    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]?
    /// Makes the snapshot the copy that readers see, or throws and leaves the one before. A body that was kept aside has
    /// ended then.
    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitResult
    /// Keeps a snapshot aside that a check refused, for a look. A body that was kept aside before has ended then.
    ///
    /// - Parameter reason: the check's words, without secrets.
    func setAside(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionResult
    /// Whether what was set aside last is this, and is kept still.
    func keepsRefused(_ pipeline: String, _ digest: String) async -> Bool
    /// Keeps what the publisher says of the copy that was just committed, instead of what it said of another one.
    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async
    /// Whether the copy that readers see is whole and has this digest.
    func isCopy(_ pipeline: String, _ digest: String) async -> Bool
    /// Notes a successful check that brought nothing new, and validators, bound as before, if the origin sent newer ones.
    ///
    /// - Parameters:
    ///   - asked: the validators that the request was made with.
    ///   - expires: as of a snapshot, instead of what was noted before.
    /// - Returns: false if the copy has gone since the request was made, or is compared with other content by now: then
    ///   nothing is noted, and it has to be fetched.
    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: Int64?
    ) async -> Bool
    /// Takes the copy away from readers, and keeps its content.
    ///
    /// - Parameter isMoot: asked when nothing else can happen to the copy before that is done: then it is left.
    func withdraw(_ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool) async -> WithdrawalResult
    /// Has readers find the copy, if it was withdrawn.
    func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult
    /// Gives the copy at hand the mode and group that this says.
    func setAccess(_ definition: PipelineDefinition) async
    /// Remembers until when the origin wants to be left alone (nil: no longer). Wall-clock microseconds since 1970.
    func rememberRetryAfter(_ pipeline: String, until: Int64?) async
    /// Remembers what was spent of a pipeline's budget, instead of what was remembered before.
    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async
    /// Remembers what is set of a pipeline's parameters, by their names, instead of what was remembered before.
    ///
    /// - Parameter settings: is asked when it is written down, so that of calls at the same time the newest stays.
    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async
    func record(_ run: RunRecord) async
    /// A part of the snapshots of a pipeline that is put together from many; nil: there is none.
    func part(_ pipeline: String, _ name: String) async -> StoredPart?
    /// Remembers parts of the snapshot that was committed last, and of those that are remembered the ones whose names are
    /// kept. All others are forgotten.
    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (_ name: String) -> Bool
    ) async
}

/// Of a store that nobody reads from nothing can be withdrawn, and nobody has rights.
extension SnapshotStore {
    package func setAccess(_ definition: PipelineDefinition) async {}
    package func withdraw(
        _ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool
    ) async -> WithdrawalResult { .left }
    package func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult { .nothing }
}
