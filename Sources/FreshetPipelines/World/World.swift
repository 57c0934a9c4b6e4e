package import FreshetModel

/// One request to a source on behalf of a run.
package struct FetchRequest: Sendable {
    package var source: SourceDefinition
    /// The validators of an intact copy: with them the request is conditional.
    package var validators: Validators?
    /// The most bytes that are accepted.
    package var maxBytes: UInt64
    /// The network epoch of the run: only connections of this epoch are used.
    package var epoch: UInt64
    /// Called often with the number of body bytes received so far, on the emitter's thread; must not block.
    package var progress: @Sendable (UInt64) -> Void
    /// Called once with the announced size of the body, if the source states it, on the emitter's thread; must not
    /// block.
    package var announced: @Sendable (UInt64) -> Void
    /// Called for each request that is made for it, including redirects, on the emitter's thread; must not block.
    package var asked: @Sendable () -> Void
    /// Why an answer of a media type is rejected, so that its body is not downloaded; nil: any media type is accepted.
    package var rejection: (@Sendable (_ mediaType: String?) -> RunFailure?)?
    /// Whether a digest or a signature of the content is checked, so that a body that was cut is rejected in any case.
    package var isProven = false
    /// Whether the request is for a file beside the content, such as a signature, with a limit that is not configured.
    package var isBeside = false
    /// Whether the URL stands in the configuration, so that messages may show its path. A URL with values of parameters
    /// or items may contain secrets or content.
    package var isConfiguredURL = false
    /// The use of content codings.
    package var coding = ContentCoding.requested
    /// The store for a long body; nil: the body must be in memory.
    package var bodyStore: (any BodyStoring)?
    /// The key of the run's pipeline; nil: none.
    package var pipeline: UInt64?
    /// Called with true when the file system does not answer for the path for a while, then with false when the access
    /// has ended; from any thread; must not block.
    package var waitsForFile: @Sendable (_ path: String, _ isWaiting: Bool) -> Void = { _, _ in }

    package init(
        source: SourceDefinition, validators: Validators? = nil, maxBytes: UInt64 = CheckRules.defaultMaxBytes,
        epoch: UInt64 = 0, progress: @escaping @Sendable (UInt64) -> Void = { _ in },
        announced: @escaping @Sendable (UInt64) -> Void = { _ in },
        asked: @escaping @Sendable () -> Void = {}, rejection: (@Sendable (String?) -> RunFailure?)? = nil,
        bodyStore: (any BodyStoring)? = nil
    ) {
        self.rejection = rejection
        self.bodyStore = bodyStore
        self.source = source
        self.validators = validators
        self.maxBytes = maxBytes
        self.epoch = epoch
        self.progress = progress
        self.announced = announced
        self.asked = asked
    }
}

/// The use of content codings (`Content-Encoding`), which compress an answer for its transfer.
package enum ContentCoding: Hashable, Sendable {
    /// One is requested, and decoded.
    case requested
    /// None is requested. If there is one, it is decoded.
    case decoded
    /// None is requested. If there is one, it belongs to the content, and the body stays as received.
    case kept
}

/// The answer of a source.
package enum FetchResult: Sendable {
    /// The copy is still current (304). New validators replace the previous ones, and a new freshness the previous
    /// freshness.
    case notModified(Validators?, freshFor: Duration? = nil)
    case content(FetchedContent)
}

/// A body and its metadata.
package struct FetchedContent: Sendable {
    /// Stored only if the request had a store. The receiver ends a stored body.
    package var body: FetchedBody
    /// The media type without parameters, in lower case, such as `application/json`; nil: not stated.
    package var mediaType: String?
    package var validators: Validators
    /// The remaining freshness that the origin states, from now on; zero: not fresh any more; nil: not stated.
    package var freshFor: Duration?
    /// The values of the `Link` fields of the answer as received, in order (RFC 8288); an emitter passes on a bounded
    /// number.
    package var links: [String]
    /// The URL that answered, after redirects, without user information and fragment; nil: the source is not a URL.
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

/// Fetches data from sources: HTTP, commands, files.
///
/// If the task is cancelled, the request ends: when `fetch` has thrown, its socket is closed, its child process gone.
package protocol Fetching: Sendable {
    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult
    /// Resolves a reference against the URL of its document (RFC 3986, 5.2), in the same way as the requests parse
    /// URLs; nil: the result is not an HTTP URL. User information and fragment are removed.
    func resolve(_ reference: String, against base: String) -> WebAddress?
}

/// The parts of an absolute HTTP URL that the engine needs.
package struct WebAddress: Hashable, Sendable {
    package var url: String
    /// The host, without port and without the brackets of an IPv6 address.
    package var host: String
    /// Scheme, host and port as text, such as `https://example.com:443` (RFC 6454): equal for equal origins.
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

/// The content that a run commits to the store.
package struct Snapshot: Sendable {
    package var body: FetchedBody
    /// Bound to the URL and to the content: they are used again only while both are the same.
    package var validators: Validators
    /// A hash that the validators are bound to besides the content: of the URL, and the transform that made the
    /// snapshot.
    package var binding: String
    /// Whether the limit on pages truncated the content.
    package var truncated: Bool
    /// When it stops being fresh, as its origin states; nil: not known, or not configured.
    package var expires: WallTime?
    /// When the content expires by what the content itself states; nil: it states nothing.
    package var contentExpires: WallTime?
    /// Whether the run requested the whole source. Otherwise it is not a check, and the results of the last check stay.
    package var isCheck: Bool

    package init(
        _ body: FetchedBody, validators: Validators, binding: String, truncated: Bool = false, expires: WallTime? = nil,
        contentExpires: WallTime? = nil, isCheck: Bool = true
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

/// The result of withdrawing a copy from readers, or of publishing it again.
package enum WithdrawalResult: Hashable, Sendable {
    case done(CurrentGeneration)
    /// The copy was withdrawn, and since it was damaged, it is not kept.
    case damaged(CurrentGeneration)
    /// No intact generation is kept.
    case nothing
    /// The copy was left as it is.
    case left
    case failed
}

/// The interface of the local cache for the engine. The methods may wait for a disk; they suspend and never block.
package protocol SnapshotStore: Sendable {
    func remembered(_ pipeline: String) async -> PersistentState
    /// The validators for a conditional request, if the copy is intact and has this binding.
    func validators(_ pipeline: String, binding: String) async -> Validators?
    /// The store for long bodies of a pipeline's snapshots; nil: all bodies must be in memory.
    func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)?
    /// The content of the published copy, intact; nil: there is none, or it has more than ``CheckRules/maxBytes``. It
    /// is for comparisons.
    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]?
    /// Publishes the snapshot as the copy, or throws and leaves the previous copy. A stored body has ended then.
    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitOutcome
    /// Keeps a rejected snapshot as the candidate. A stored body has ended then.
    ///
    /// - Parameter reason: the message of the check, without secrets.
    /// - - Returns: nil if it could not be kept.
    func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    /// Whether the last rejected content has this digest and is still kept.
    func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool
    /// Stores the trusted comment of the copy that was just committed, instead of that of another one.
    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async
    /// Whether the published copy is intact and has this digest.
    func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool
    /// Records a successful check without new content, and new validators of the origin, with the same binding.
    ///
    /// - Parameters:
    ///   - asked: the validators of the request.
    ///   - expires: as in ``Snapshot/expires``, instead of the previous value.
    /// - - Returns: false if the copy has gone since the request was made, or is compared with other content by now:
    ///   then nothing is recorded, and the content has to be fetched.
    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool
    /// Withdraws the copy from readers, and keeps its content.
    ///
    /// - - Parameter isMoot: called when nothing else can happen to the copy before the withdrawal; if it returns true,
    ///   the copy is left as it is.
    func withdraw(_ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool) async -> WithdrawalResult
    /// Publishes the copy again, if it was withdrawn.
    func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult
    /// Verifies after a run without a new copy that readers find the published copy, and publishes it again if not.
    ///
    /// - - Returns: `done` if it was published again, `nothing` if it is damaged, `left` if readers find it or it is
    ///   withdrawn.
    func restoreCopy(of pipeline: String) async -> WithdrawalResult
    /// Sets the mode and group of the copy as configured.
    func setAccess(_ definition: PipelineDefinition) async
    /// Stores the end of the origin's `Retry-After` (nil: there is none any more).
    func rememberRetryAfter(_ pipeline: String, until: WallTime?) async
    /// Stores the used part of a pipeline's budget, instead of the previous value.
    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async
    /// Stores the set values of a pipeline's parameters, by name, instead of the previous values.
    ///
    /// - Parameter settings: called when the values are written, so that of concurrent calls the newest values stay.
    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async
    /// Stores a run. A crash may lose the runs of the last moment.
    func record(_ run: RunRecord) async
    /// Records a run like ``record(_:)``, if that takes no wait. Returns false if it was not recorded.
    func recordNow(_ run: RunRecord) -> Bool
    /// The machine is about to sleep: stores what waits to be stored, without waiting for it.
    func willSleep()
    /// Stored parts of a pipeline's snapshots, in the order of their names; nil: there is none of this name. The answer may
    /// end early, so that it does not become long, but it has at least one part.
    func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?]
    /// Stores new parts of the last committed snapshot, and keeps stored parts with names for which `isKept` returns
    /// true. All other parts are removed.
    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (_ name: String) -> Bool
    ) async
}

/// Defaults for a store without readers: it cannot withdraw a copy, and has no access rights.
extension SnapshotStore {
    package func willSleep() {}
    package func recordNow(_ run: RunRecord) -> Bool { false }
    package func setAccess(_ definition: PipelineDefinition) async {}
    package func withdraw(
        _ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool
    ) async -> WithdrawalResult { .left }
    package func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult { .nothing }
    package func restoreCopy(of pipeline: String) async -> WithdrawalResult { .left }
}
