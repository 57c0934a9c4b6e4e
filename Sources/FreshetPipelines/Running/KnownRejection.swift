import FreshetModel

/// Content that a check rejected, while the same checks are configured: a conditional request shows whether the source
/// still has it, so that it is not downloaded again.
struct KnownRejection: Hashable, Sendable {
    /// Where the content is kept. Requests are conditional only while it is kept; otherwise it is downloaded and
    /// checked again.
    enum Location: Hashable, Sendable {
        /// It is kept as the rejected candidate.
        case aside(RejectedCandidate)
        /// It is the published copy, with this digest, and a stricter check rejects it now. A confirmation by the
        /// source does not change the content, so it is not checked again.
        case copy(digest: ContentDigest)
    }

    var location: Location
    var failure: RunFailure
    /// The validators of the source for it.
    var validators: Validators
    /// The binding of the validators besides the content; it includes the checks.
    var binding: String

    /// The source has confirmed that it still has this content.
    mutating func isConfirmed(at wallNow: WallTime) {
        guard case .aside(var snapshot) = location else { return }
        snapshot.rejectedAt = wallNow
        location = .aside(snapshot)
    }

    /// The rejected candidate; nil: the content is the copy.
    var snapshot: RejectedCandidate? {
        switch location {
        case .aside(let snapshot): snapshot
        case .copy: nil
        }
    }

    func isKept(of pipeline: String, in store: some SnapshotStore) async -> Bool {
        switch location {
        case .aside(let snapshot): await store.keepsRejected(pipeline, snapshot.digest)
        case .copy(let digest): await store.isCopy(pipeline, digest)
        }
    }
}
