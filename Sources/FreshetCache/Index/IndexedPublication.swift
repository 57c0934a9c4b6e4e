import FreshetModel

/// A pipeline's current generation, published or withdrawn, as recorded in the index.
struct IndexedPublication: Hashable, Sendable {
    var pipeline: IndexedPipeline
    var file: String
    var generation: IndexedGeneration
    /// The last status of the published file; nil if it was not read.
    var status: FileStatus?

    /// Readers find no file, and the content is kept.
    var isWithdrawn: Bool { pipeline.withdrawnAt != nil }

    /// The digest of the origin's content, if that is known to be other content.
    var originDigest: ContentDigest? {
        pipeline.originDigest == generation.content.digest ? nil : pipeline.originDigest
    }

    /// The digest that validators must belong to: that of the content that the last check of the origin returned.
    var checkedDigest: ContentDigest { originDigest ?? generation.content.digest }

    /// - Parameter revision: see ``CurrentGeneration/revision``.
    func generation(at location: PublishedLocation, revision: UInt64 = 0) -> CurrentGeneration {
        var result = generation.generation(at: location)
        result.isBehind = originDigest != nil
        result.pinnedSince = pipeline.pin?.since
        result.withdrawnSince = pipeline.withdrawnAt
        result.revision = revision
        if pipeline.isSet { result.directory = CacheLayout.linkName(ofStamp: location.path) }
        return result
    }
}
