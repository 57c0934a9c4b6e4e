import FreshetModel

/// What a runner knows about the content of its pipeline: the copy, the last check, and the content that a check
/// rejected.
struct CopyRecord: Sendable {
    /// The current generation, published or withdrawn; nil: there is no copy.
    @Boxed private(set) var generation: CurrentGeneration?
    /// Why the copy is not known, as a clause; nil: it is known.
    @Boxed private(set) var error: String?
    /// When a check last confirmed the copy.
    var lastCheck: WallTime?
    /// The content that a check rejected last.
    var rejected: RejectedCandidate? { rejectedContent?.candidate }
    @Boxed private var rejectedContent: RejectedContent?
    /// The rejection for conditional requests.
    @Boxed private(set) var rejection: KnownRejection?
    /// The trusted comment of the last signed content.
    @Boxed private var signed: SignedComment?
    /// What the machine knows about the copy.
    private(set) var notices: CopyNotices

    private struct RejectedContent: Sendable {
        var candidate: RejectedCandidate
        /// The run that fetched it; nil: it was before a restart of the daemon.
        var run: UInt64?
    }

    /// - Parameter isKnown: whether the machine knows the state of the copy from the start.
    init(_ remembered: PersistentState, isKnown: Bool) {
        notices = CopyNotices(remembered.generation, needsCopy: isKnown)
        generation = remembered.generation
        error = remembered.copyError
        lastCheck = remembered.lastCheck
        rejectedContent = remembered.rejected.map { RejectedContent(candidate: $0) }
        signed = remembered.signed
    }

    /// The current generation with the comment of its signature.
    var current: CurrentGeneration? {
        var copy = generation
        if let signed, signed.digest == copy?.digest { copy?.comment = signed.comment }
        return copy
    }

    /// The current generation with the comment of its signature, for a report.
    var shared: Boxed<CurrentGeneration> { signed == nil ? _generation : Boxed(wrappedValue: current) }

    /// Whether a partial result may replace the copy: it is not pinned, withdrawn or rolled back to.
    var isReplaceable: Bool {
        generation.map { !$0.isBehind && $0.pinnedSince == nil && $0.withdrawnSince == nil } ?? true
    }

    /// Sets the current generation, unless a newer one is known already.
    mutating func record(_ new: CurrentGeneration?) {
        if let new, new.revision >= generation?.revision ?? 0 { (generation, error) = (new, nil) }
        // The candidate has become the copy, in whatever way.
        if let digest = new?.digest, digest == rejected?.digest { rejectedContent = nil }
    }

    /// The state of the copy was read again, without a generation.
    mutating func isUnknown(because error: String?) { self.error = error }

    /// Records the publisher's trusted comment; returns whether it is new.
    mutating func record(_ comment: SignedComment) -> Bool {
        defer { signed = comment }
        return signed != comment
    }

    /// The copy was unpinned or released.
    mutating func release() { generation?.release() }

    /// There is no copy any more.
    mutating func lose() { generation = nil }

    /// The withdrawn copy was damaged, so there is none any more.
    mutating func loseWithdrawn() {
        generation = nil
        notices.lose()
    }

    // MARK: The machine

    /// Whether the machine has to get an event about the copy.
    var concernsMachine: Bool { notices.concerns(generation) }

    /// The events about the copy that the machine has not got yet.
    ///
    /// - Parameters: see ``CopyNotices/events(about:withdraws:findsExpiry:now:wallNow:)``.
    mutating func events(
        withdraws: Bool, findsExpiry: Bool, now: BootInstant, wallNow: () -> WallTime
    ) -> [RefreshEvent] {
        // The usual case, for which nothing is copied.
        guard withdraws || findsExpiry || !notices.isEmpty || generation?.withdrawnSince != nil else { return [] }
        return notices.events(
            about: generation, withdraws: withdraws, findsExpiry: findsExpiry, now: now, wallNow: wallNow)
    }

    // MARK: Rejected content

    /// A run has rejected content.
    mutating func record(_ rejected: RunProgress.Rejected, by run: UInt64) {
        if let snapshot = rejected.snapshot {
            rejectedContent = rejected.isGone ? nil : RejectedContent(candidate: snapshot, run: run)
        }
        rejection = rejected.known
    }

    /// Requests are not conditional on the rejected content any more: the source has other content, or the content may
    /// pass now.
    mutating func forgetRejection() { rejection = nil }

    /// The rejected candidate is not kept any more.
    ///
    /// - Parameter digest: only if it is this one; nil: in any case.
    mutating func forgetRejected(_ digest: ContentDigest? = nil) {
        if digest == nil || rejected?.digest == digest { rejectedContent = nil }
    }

    /// The operator has published content.
    ///
    /// - Returns: the run that fetched it, if it is the content that was rejected last; nil: other content was rejected
    ///   since then, and stays rejected, or the run was before a restart of the daemon.
    mutating func accept(_ generation: CurrentGeneration) -> UInt64? {
        guard let rejected = rejectedContent, rejected.candidate.digest == generation.digest else {
            record(generation)
            return nil
        }
        record(generation)
        lastCheck = max(lastCheck ?? rejected.candidate.rejectedAt, rejected.candidate.rejectedAt)
        return rejected.run
    }

    /// A run has rejected content. If the operator has accepted that content meanwhile, the run has confirmed the copy.
    ///
    /// - Returns: the confirmed generation.
    mutating func confirm(_ candidate: RejectedCandidate, at wallNow: WallTime) -> CurrentGeneration? {
        guard let generation, generation.digest == candidate.digest else { return nil }
        (rejectedContent, rejection) = (nil, nil)
        lastCheck = wallNow
        return generation
    }
}
