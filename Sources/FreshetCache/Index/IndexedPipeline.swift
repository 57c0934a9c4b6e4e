import FreshetModel

/// A pipeline's row.
struct IndexedPipeline: Hashable, Sendable {
    var id: Int64
    var name: String
    /// The file below `current/` that the pipeline owns.
    var file: String?
    /// The number of the current generation.
    var current: Int64?
    /// The highest number that any generation of the pipeline had.
    var lastNumber: Int64
    /// The digest of the origin's content, if that is known and was not made the current generation.
    var originDigest: ContentDigest?
    var pin: IndexedPin?
    /// The digest of the content that the last check of the origin returned; nil if it is not known. The current
    /// generation may have more pages.
    var checkDigest: ContentDigest?
    /// Whether the pipeline keeps several files; then `file` is their stamp.
    var isSet = false
    /// The former links of the pipeline, oldest first. They and all that belongs to them are removed once readers see
    /// other content.
    var formerSets: [String] = []
    /// When the current generation was withdrawn because it is too old; nil if readers find it. A withdrawn generation
    /// stays current: no older generation takes its place.
    var withdrawnAt: WallTime?

    /// Whether the copy stays although there is other content.
    ///
    /// - Parameter current: the digest of the current generation.
    func holdsBack(_ candidate: Candidate, over current: ContentDigest?) -> Bool {
        if let pin { return pin.content.digest != candidate.digest }
        guard let originDigest, originDigest != current else { return false }
        // A candidate that is not from a check was begun before the rollback: it belongs to the copy of that time.
        return !candidate.isCheck || candidate.digest == originDigest
    }

    /// Whether this is the current or the pinned generation.
    func holds(_ content: StoredContent) -> Bool { content.number == current || content == pin?.content }
}

/// A pin: the pipeline's copy must not be replaced.
struct IndexedPin: Hashable, Sendable {
    var content: StoredContent
    var since: WallTime
}
