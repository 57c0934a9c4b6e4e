package import FreshetModel

/// The limits of the disk space that the cache uses.
package struct CacheQuota: Hashable, Sendable {
    /// The most bytes of all content: generations, rejected content, and content that is being written. Nil: no limit.
    package var limit: Int64?
    /// The space that must stay free on the file system.
    package var reserve: FreeSpaceReserve

    package init(limit: Int64? = nil, reserve: FreeSpaceReserve = .standard) {
        self.limit = limit
        self.reserve = reserve
    }
}

/// Content that was removed to free space.
package struct RemovedContent: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        package var pipeline: String
        /// Nil if it is rejected content.
        package var generation: Int64?
        /// Bytes.
        package var size: Int64
        /// The digest of rejected content; nil if it is a generation.
        package var rejected: ContentDigest?
    }

    /// The pipeline whose new content needed the space; nil if the limit was lowered.
    package var pipeline: String?
    /// In the order of removal.
    package var items: [Item] = []

    package var bytes: Int64 { items.reduce(0) { $0.addingClamped($1.size) } }
}

/// Content that may be removed when space is needed.
struct RemovableContent: Hashable, Sendable {
    var pipeline: String
    /// Nil if it is rejected content.
    var number: Int64?
    var digest: ContentDigest
    /// Bytes.
    var size: Int64

    /// Returns nil for an invalid digest.
    init?(pipeline: String, number: Int64?, digest: [UInt8], size: Int64) {
        guard let digest = ContentDigest(bytes: digest) else { return nil }
        (self.pipeline, self.number, self.digest, self.size) = (pipeline, number, digest, size)
    }

    init(_ generation: IndexedGeneration, of pipeline: String) {
        (self.pipeline, number) = (pipeline, generation.content.number)
        (digest, size) = (generation.content.digest, generation.identity.size)
    }

    init(_ rejection: IndexedRejection, of pipeline: String) {
        (self.pipeline, number, digest, size) = (pipeline, nil, rejection.digest, rejection.size)
    }

    /// Nil if it is rejected content.
    var stored: StoredContent? { number.map { StoredContent(number: $0, digest: digest) } }
}

/// The operation for which space is freed.
struct SpaceRequest: Sendable {
    let pipeline: String
    /// The number of the pipeline's generations that stay after its commit.
    let keep: Int
    /// Whether the caller holds the pipeline's lock. Without the lock, no content of the pipeline is removed while it
    /// is being written.
    let holdsLock: Bool
    /// Whether the space is for rejected content; no generation is removed for that.
    let isRejection: Bool
    /// The file of the cache that is copied.
    let source: String?
    /// Whether the content is written to disk twice: several files are also in a directory, with at most as many bytes.
    let makesDirectory: Bool

    init(
        _ destination: CacheDestination, holdsLock: Bool, isRejection: Bool = false, copying source: String? = nil,
        makesDirectory: Bool = true
    ) {
        (pipeline, keep) = (destination.pipeline, destination.keep)
        (self.holdsLock, self.isRejection, self.source) = (holdsLock, isRejection, source)
        self.makesDirectory = makesDirectory && destination.isSet && !isRejection
    }
}
