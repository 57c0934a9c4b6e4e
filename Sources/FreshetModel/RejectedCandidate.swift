/// Content that a check rejected, kept as the candidate.
package struct RejectedCandidate: Hashable, Sendable {
    package var digest: ContentDigest
    /// The size in bytes.
    package var size: UInt64
    /// When it was rejected last.
    package var rejectedAt: WallTime
    /// When it is removed.
    package var keptUntil: WallTime
    /// The message of the check.
    package var reason: String

    package init(digest: ContentDigest, size: UInt64, rejectedAt: WallTime, keptUntil: WallTime, reason: String) {
        self.digest = digest
        self.size = size
        self.rejectedAt = rejectedAt
        self.keptUntil = keptUntil
        self.reason = reason
    }
}

/// The result of rejecting content.
package enum RejectionOutcome: Hashable, Sendable {
    /// It is kept as the candidate, instead of the previous one.
    case kept(RejectedCandidate)
    /// The operator has accepted the same content before: it was committed in spite of the check.
    case accepted(CommitOutcome)
    /// The content is that of the current copy: the check has changed since. It is not kept as a candidate.
    case isCopy(ContentDigest)
}
