/// A generation that there is, or was.
package struct PastGeneration: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    package var committedAt: WallTime
    /// The source had more than was asked for.
    package var truncated: Bool
    /// What the run was for that made it, as text for people; nil: not known.
    package var causes: String?
    /// How long that run took; nil: not known.
    package var duration: Duration?
    /// Its content is still there.
    package var isKept: Bool

    package init(
        number: Int64, digest: ContentDigest, size: Int64, committedAt: WallTime, truncated: Bool = false,
        causes: String? = nil, duration: Duration? = nil, isKept: Bool
    ) {
        self.number = number
        self.digest = digest
        self.size = size
        self.committedAt = committedAt
        self.truncated = truncated
        self.causes = causes
        self.duration = duration
        self.isKept = isKept
    }
}
