import Glibc
import Synchronization

/// Frees space for new content: there is a quota of all content, and a reserve of free space.
///
/// Content is first deleted from the index and then removed, like content beyond `keep`: after a crash, remaining
/// content is added to the index again, or was never published, or is deleted at the next start.
package final class CacheSpace: Sendable {
    private let context: CacheContext
    /// Held while space is freed, so that only one caller does it. Taken after the lock of the pipeline that needs the
    /// space.
    private let isFreeing = Mutex<Void>(())
    /// Waits a moment for pipelines that are busy with removable content; returns false if the wait must end.
    ///
    /// - Parameter attempt: the number of waits before.
    private let waitForSpace: @Sendable (_ attempt: Int) -> Bool
    /// Called with the content that was removed to free space.
    private let onRemoval: @Sendable (RemovedContent) -> Void

    init(
        _ context: CacheContext, waitForSpace: @escaping @Sendable (_ attempt: Int) -> Bool = CacheSpace.wait,
        onRemoval: @escaping @Sendable (RemovedContent) -> Void = { _ in }
    ) {
        self.context = context
        self.waitForSpace = waitForSpace
        self.onRemoval = onRemoval
    }

    /// Sets the limits. If the cache exceeds them, removable content is removed.
    package func setQuota(_ quota: CacheQuota) throws(CacheError) {
        context.quota.withLock { $0 = quota }
        try applyLimit()
    }

    /// The bytes of all content, and the limit; nil: no limit.
    package var usage: (bytes: Int64, limit: Int64?) {
        (
            context.index.contentBytes.addingClamped(context.names.unfinishedBytes), context.quota.withLock(\.limit)
        )
    }

    // MARK: Inside

    /// Whether the content in the index exceeds the limit.
    var isOverLimit: Bool { limitShortage(0) != nil }

    /// Throws if there is not enough space even after removing all removable content. Does not remove anything yet:
    /// content that is only announced may never come.
    func check(for bytes: UInt64, _ spaceRequest: SpaceRequest) throws(CacheError) {
        guard let shortage = try shortage(announced: bytes, spaceRequest) else { return }
        try isFreeing.withLock { _ throws(CacheError) in _ = try expendable(for: shortage, spaceRequest) }
    }

    /// Removes old content until there is enough space; if all removable content is not enough, none is removed.
    ///
    /// - Parameter size: the bytes of the candidate that have been written.
    /// - Throws: ``CacheError/overLimit(bytes:kept:limit:)``, ``CacheError/noSpace(path:available:reserve:)``.
    func free(for size: Int64, _ spaceRequest: SpaceRequest) throws(CacheError) {
        guard let first = try shortage(size, spaceRequest) else { return }
        var removed = RemovedContent(pipeline: spaceRequest.pipeline)
        defer { if !removed.items.isEmpty { onRemoval(removed) } }
        var attempt = 0
        while try !free(for: size, first, spaceRequest, &removed, isLast: false) {
            guard waitForSpace(attempt) else {
                _ = try free(for: size, first, spaceRequest, &removed, isLast: true)
                return
            }
            attempt += 1
        }
    }

    /// The number of waits for busy pipelines, and the duration of each wait in microseconds: about as long as a commit
    /// takes on a slow disk.
    private static let (attempts, pause) = (100, UInt32(50_000))

    static func wait(_ attempt: Int) -> Bool {
        guard attempt < attempts else { return false }
        usleep(pause)
        return true
    }

    /// - Parameter isLast: do not wait any more for content of busy pipelines.
    /// - Returns: false if there would be enough space if pipelines were not busy with removable content. Concurrent
    ///   commits hold the locks of their pipelines; this method never waits for such a lock with a lock that they may
    ///   wait for.
    private func free(
        for size: Int64, _ first: MissingSpace, _ spaceRequest: SpaceRequest, _ removed: inout RemovedContent,
        isLast: Bool
    ) throws(CacheError) -> Bool {
        try isFreeing.withLock { _ throws(CacheError) in
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
        try isFreeing.withLock { _ throws(CacheError) in
            var busy: Set<String> = []
            while let shortage = limitShortage(0) {
                let skipped = busy
                let content = try context.withIndex { (index) throws(SQLiteError) in
                    try index.removal.content(shortage.bytes, for: nil, skipping: skipped)
                }
                if content.isEmpty { return }
                try remove(content, for: nil, &removed, &busy)
            }
        }
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
        let reserve = context.quota.withLock(\.reserve)
        if reserve == .none { return byLimit }
        let path = context.layout.cacheDirectory
        let space = try context.onFiles { (files) throws(SystemCallError) in try files.space(path) }
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
        let paths = context.layout
        let content = try context.withIndex { (index) throws(SQLiteError) in
            try index.removal.content(shortage.bytes, for: spaceRequest, skipping: busy) {
                paths.path(of: $0) == spared
            }
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
                    try context.entry(item.pipeline).withLockIfAvailable { (state) throws(CacheError) in
                        // It is not certain which generation readers see.
                        state.isSuspect || state.epoch != context.index.epoch
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
        let isForgotten = try context.contentTransaction { (index) throws(SQLiteError) in try index.forget(item) }
        // If the removal fails, the next start finds the file.
        if isForgotten { try? context.fileSystem.unlink(context.layout.path(of: item)) }
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
