package import FreshetModel
import Glibc
import Synchronization

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

/// Frees space for new content: there is a quota of all content, and a reserve of free space.
///
/// Content is first deleted from the index and then removed, like content beyond `keep`: after a crash, remaining
/// content is added to the index again, or was never published, or is deleted at the next start.
extension LocalCache {
    /// Sets the limits. If the cache exceeds them, removable content is removed.
    package func setQuota(_ quota: CacheQuota) throws(CacheError) {
        self.quota.withLock { $0 = quota }
        try applyLimit()
    }

    /// The bytes of all content, and the limit; nil: no limit.
    package var usage: (bytes: Int64, limit: Int64?) {
        (used.load(ordering: .relaxed).addingClamped(unfinished), quota.withLock(\.limit))
    }

    // MARK: Inside

    /// Whether the content in the index exceeds the limit.
    var isOverLimit: Bool { limitShortage(0) != nil }

    /// Throws if there is not enough space even after removing all removable content. Does not remove anything yet:
    /// content that is only announced may never come.
    func checkSpace(for bytes: UInt64, _ spaceRequest: SpaceRequest) throws(CacheError) {
        guard let shortage = try shortage(announced: bytes, spaceRequest) else { return }
        try freeingSpace.withLock { _ throws(CacheError) in _ = try expendable(for: shortage, spaceRequest) }
    }

    /// Removes old content until there is enough space; if all removable content is not enough, none is removed.
    ///
    /// - Parameter size: the bytes of the candidate that have been written.
    /// - Throws: ``CacheError/overLimit(bytes:kept:limit:)``, ``CacheError/noSpace(path:available:reserve:)``.
    func freeSpace(for size: Int64, _ spaceRequest: SpaceRequest) throws(CacheError) {
        guard let first = try shortage(size, spaceRequest) else { return }
        var removed = RemovedContent(pipeline: spaceRequest.pipeline)
        defer { if !removed.items.isEmpty { onRemoval(removed) } }
        var attempt = 0
        while try !freeSpace(for: size, first, spaceRequest, &removed, isLast: false) {
            guard waitForSpace(attempt) else {
                _ = try freeSpace(for: size, first, spaceRequest, &removed, isLast: true)
                return
            }
            attempt += 1
        }
    }

    /// The number of waits for busy pipelines, and the duration of each wait in microseconds: about as long as a commit
    /// takes on a slow disk.
    private static let (spaceAttempts, spaceWait) = (100, UInt32(50_000))

    static func waitForSpace(_ attempt: Int) -> Bool {
        guard attempt < spaceAttempts else { return false }
        usleep(spaceWait)
        return true
    }

    /// - Parameter isLast: do not wait any more for content of busy pipelines.
    /// - Returns: false if there would be enough space if pipelines were not busy with removable content. Concurrent
    ///   commits hold the locks of their pipelines; this method never waits for such a lock with a lock that they may
    ///   wait for.
    private func freeSpace(
        for size: Int64, _ first: MissingSpace, _ spaceRequest: SpaceRequest, _ removed: inout RemovedContent,
        isLast: Bool
    ) throws(CacheError) -> Bool {
        try freeingSpace.withLock { _ throws(CacheError) in
            // Pipelines that are busy with their content.
            var busy: Set<String> = []
            // Repeats if a pipeline was busy, if a program still has removed content open, or if other pipelines write
            // meanwhile.
            while let shortage = try shortage(size, spaceRequest) {
                let content: [RemovableContent]
                do throws(CacheError) {
                    content = try expendable(for: shortage, spaceRequest, skipping: busy)
                } catch {
                    guard !isLast, !busy.isEmpty else { throw error }
                    // Throws if it would not be enough with the busy pipelines either.
                    _ = try expendable(for: shortage, spaceRequest)
                    return false
                }
                // The space of removed content may become free later: more content would be removed in vain.
                if shortage.isOfDisk, removed.bytes >= first.bytes { throw shortage.error(0) }
                try remove(content, for: spaceRequest, &removed, &busy)
            }
            return true
        }
    }

    /// Removes content until the limit is met, as far as content may be removed.
    func applyLimit() throws(CacheError) {
        var removed = RemovedContent()
        defer { if !removed.items.isEmpty { onRemoval(removed) } }
        try freeingSpace.withLock { _ throws(CacheError) in
            var busy: Set<String> = []
            while let shortage = limitShortage(0) {
                let skipped = busy
                let content = try withIndex { (index) throws(SQLiteError) in
                    try index.expendable(shortage.bytes, for: nil, skipping: skipped)
                }
                if content.isEmpty { return }
                try remove(content, for: nil, &removed, &busy)
            }
        }
    }

    /// Updates the size of all content from the index.
    func measure() throws(CacheError) {
        try withIndex { (index) throws(SQLiteError) in try self.measure(&index) }
    }

    func measure(_ index: inout CacheIndex) throws(SQLiteError) {
        used.store(try index.usage(), ordering: .relaxed)
    }

    /// Missing space.
    private struct MissingSpace {
        var bytes: Int64
        /// Whether the space is missing on the file system, and not by the cache's limit.
        var isOfDisk = false
        /// - Parameter expendable: the bytes that could be removed.
        var error: (_ expendable: Int64) -> CacheError
    }

    /// - Parameters:
    ///   - size: the bytes of the candidate that have been written.
    ///   - announced: further bytes that will be written.
    private func shortage(
        _ size: Int64 = 0, announced: UInt64 = 0, _ spaceRequest: SpaceRequest
    ) throws(CacheError) -> MissingSpace? {
        let byLimit = limitShortage(size, announced: announced)
        let reserve = quota.withLock(\.reserve)
        if reserve == .none { return byLimit }
        let path = layout.cacheDirectory
        let space = try onFiles { (files) throws(SystemCallError) in try files.space(path) }
        let needed = reserve.bytes(of: space.total)
        // The limit is on content; the directory made from it uses disk space too.
        let whole = UInt64(clamping: size).addingWithLimit(announced)
        let further = spaceRequest.makesDirectory ? announced.addingWithLimit(whole) : announced
        let wanted = needed.addingWithLimit(further)
        guard space.available < wanted else { return byLimit }
        let bytes = Int64(clamping: wanted - space.available)
        if let byLimit, byLimit.bytes > bytes { return byLimit }
        return MissingSpace(bytes: bytes, isOfDisk: true) { _ in
            space.available < needed
                ? .noSpace(path: path, available: space.available, reserve: needed)
                : .noSpaceFor(bytes: further, path: path, available: space.available, reserve: needed)
        }
    }

    private func limitShortage(_ size: Int64, announced: UInt64 = 0) -> MissingSpace? {
        let (bytes, limit) = usage
        let (total, isOver) = bytes.addingReportingOverflow(Int64(clamping: announced))
        guard let limit, isOver || total > limit else { return nil }
        return MissingSpace(bytes: isOver ? .max : total - limit) { expendable in
            .overLimit(
                bytes: isOver ? .max : size + Int64(clamping: announced), kept: max(0, bytes - size - expendable),
                limit: limit)
        }
    }

    /// The content to remove for a shortage.
    ///
    /// - Throws: the shortage's error, if all removable content is not enough.
    private func expendable(
        for shortage: MissingSpace, _ spaceRequest: SpaceRequest, skipping busy: Set<String> = []
    ) throws(CacheError) -> [RemovableContent] {
        let spared = spaceRequest.source
        let layout = layout
        let content = try withIndex { (index) throws(SQLiteError) in
            try index.expendable(shortage.bytes, for: spaceRequest, skipping: busy) { layout.path(of: $0) == spared }
        }
        let bytes = content.reduce(Int64(0)) { $0.addingClamped($1.size) }
        guard bytes >= shortage.bytes else { throw shortage.error(bytes) }
        return content
    }

    /// Removes content whose pipelines are not busy.
    private func remove(
        _ content: [RemovableContent], for spaceRequest: SpaceRequest?, _ removed: inout RemovedContent,
        _ busy: inout Set<String>
    ) throws(CacheError) {
        for item in content where !busy.contains(item.pipeline) {
            let isRemoved: Bool
            if let spaceRequest, spaceRequest.holdsLock, spaceRequest.pipeline == item.pipeline {
                isRemoved = try remove(item)
            } else {
                // Does not wait for this lock: its holder may wait for the lock of this caller.
                isRemoved =
                    try entry(item.pipeline).state.withLockIfAvailable { (state) throws(CacheError) in
                        // It is not certain which generation readers see.
                        state.isSuspect || state.epoch != indexEpoch.load(ordering: .acquiring)
                            ? false : try remove(item)
                    } ?? false
            }
            guard isRemoved else {
                busy.insert(item.pipeline)
                continue
            }
            removed.items.append(
                RemovedContent.Item(
                    pipeline: item.pipeline, generation: item.number, size: item.size,
                    rejected: item.number == nil ? item.digest : nil))
        }
    }

    private func remove(_ item: RemovableContent) throws(CacheError) -> Bool {
        let isForgotten = try contentTransaction { (index) throws(SQLiteError) in try index.forget(item) }
        // If the removal fails, the next start finds the file.
        if isForgotten { try? fileSystem.unlink(layout.path(of: item)) }
        // A directory of several files may still be in use by a reader: the next commit removes it.
        return isForgotten
    }
}

extension UInt64 {
    /// The sum, or the largest number.
    fileprivate func addingWithLimit(_ other: UInt64) -> UInt64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}

extension CacheLayout {
    fileprivate func path(of content: RemovableContent) -> String {
        guard let stored = content.stored else { return rejected(content.digest, of: content.pipeline) }
        return generation(stored, of: content.pipeline)
    }
}
