/// Content that a check has refused, for as long as that check says: its source is asked whether it still has it, and not
/// for all of it again.
struct KnownRejection: Hashable, Sendable {
    /// Where the content is. Only while it is there its source is asked so: else it comes whole again, to be looked at.
    enum Place: Hashable, Sendable {
        /// It is kept aside.
        case aside(RejectedSnapshot)
        /// It is the copy that readers have, by its digest, and a check that is stricter than it was refuses that. What a
        /// source says of it would make no other content of it, so that the check need not see it again.
        case copy(digest: String)
    }

    var place: Place
    var failure: RunFailure
    /// What the source called it.
    var validators: Validators
    /// What they are bound to besides the content, the checks among it.
    var binding: String

    /// - Parameter wallNow: the source has said again that it has this.
    mutating func isConfirmed(at wallNow: Int64) {
        guard case .aside(var snapshot) = place else { return }
        snapshot.refusedAt = wallNow
        place = .aside(snapshot)
    }

    /// What is kept aside; nil: it is the copy.
    var snapshot: RejectedSnapshot? {
        switch place {
        case .aside(let snapshot): snapshot
        case .copy: nil
        }
    }

    func isKept(of pipeline: String, in store: some SnapshotStore) async -> Bool {
        switch place {
        case .aside(let snapshot): await store.keepsRefused(pipeline, snapshot.digest)
        case .copy(let digest): await store.isCopy(pipeline, digest)
        }
    }
}
