package import FreshetModel

/// A generation in the history, whether its content is kept or not.
package struct PastGeneration: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    package var committedAt: WallTime
    /// The source had more content than was requested.
    package var truncated: Bool
    /// The causes of the run that made it, as text for people; nil if they are not known.
    package var causes: String?
    /// The duration of that run; nil if it is not known.
    package var duration: Duration?
    /// The mirror from which that run has the content; nil: there are no mirrors, or it is not known.
    package var mirror: String?
    /// Whether its content is still kept.
    package var isKept: Bool

    package init(
        number: Int64, digest: ContentDigest, size: Int64, committedAt: WallTime, truncated: Bool = false,
        causes: String? = nil, duration: Duration? = nil, mirror: String? = nil, isKept: Bool
    ) {
        self.number = number
        self.digest = digest
        self.size = size
        self.committedAt = committedAt
        self.truncated = truncated
        self.causes = causes
        self.duration = duration
        self.mirror = mirror
        self.isKept = isKept
    }
}
