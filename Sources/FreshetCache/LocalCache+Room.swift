import Glibc
import Synchronization

/// How much room the cache may take.
package struct CacheQuota: Hashable, Sendable {
    /// Bytes that all content may have: generations, what checks refused, and what is being written. Nil: any number.
    package var limit: Int64?
    /// What must stay free on the file system.
    package var reserve: FreeSpaceReserve

    package init(limit: Int64? = nil, reserve: FreeSpaceReserve = .standard) {
        self.limit = limit
        self.reserve = reserve
    }
}

/// Content that was removed for room.
package struct RemovedContent: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        package var pipeline: String
        /// Nil: it is what a check had refused.
        package var generation: Int64?
        /// Bytes.
        package var size: Int64
        /// The digest of what a check had refused; nil: it is a generation.
        package var refused: ContentDigest?
    }

    /// Whose new content needed it; nil: the limit is lower than it was.
    package var pipeline: String?
    /// In the order in which it went.
    package var items: [Item] = []

    package var bytes: Int64 { items.reduce(0) { $0.addingClamped($1.size) } }
}

/// Content that may go when room is needed.
struct RemovableContent: Hashable, Sendable {
    var pipeline: String
    /// Nil: it is what a check refused.
    var number: Int64?
    var digest: ContentDigest
    /// Bytes.
    var size: Int64

    /// Nil for a digest that is none.
    init?(pipeline: String, number: Int64?, digest: [UInt8], size: Int64) {
        guard let digest = ContentDigest(bytes: digest) else { return nil }
        (self.pipeline, self.number, self.digest, self.size) = (pipeline, number, digest, size)
    }

    init(_ generation: IndexedGeneration, of pipeline: String) {
        (self.pipeline, number) = (pipeline, generation.content.number)
        (digest, size) = (generation.content.digest, generation.identity.size)
    }

    init(_ refusal: IndexedRejection, of pipeline: String) {
        (self.pipeline, number, digest, size) = (pipeline, nil, refusal.digest, refusal.size)
    }

    /// Nil: it is what a check refused.
    var stored: StoredContent? { number.map { StoredContent(number: $0, digest: digest) } }
}

/// For whom room is made.
struct SpaceRequest: Sendable {
    let pipeline: String
    /// Generations of it that stay after its commit.
    let keep: Int
    /// The caller holds the pipeline's lock. Without it nothing of the pipeline that is being written goes.
    let holdsLock: Bool
    /// It is for what a check refused, which no generation goes for.
    let isRefusal: Bool
    /// The file of the cache that is being copied.
    let source: String?
    /// Its content is put on disk a second time: several files stand in a directory too, and have as many bytes at most.
    let makesDirectory: Bool

    init(
        _ destination: CacheDestination, holdsLock: Bool, isRefusal: Bool = false, copying source: String? = nil,
        makesDirectory: Bool = true
    ) {
        (pipeline, keep) = (destination.pipeline, destination.keep)
        (self.holdsLock, self.isRefusal, self.source) = (holdsLock, isRefusal, source)
        self.makesDirectory = makesDirectory && destination.isSet && !isRefusal
    }
}

/// Room for new content: a limit on all content, and a reserve of free space.
///
/// What goes for it is first forgotten by the index and then removed, as content beyond `keep` is: what a crash leaves is
/// known again, or was never published, or is forgotten at the next start.
extension LocalCache {
    /// What the cache may take from now on. If it has more, what is too much goes, as far as it may.
    package func setRoom(_ room: CacheQuota) throws(CacheError) {
        self.room.withLock { $0 = room }
        try applyLimit()
    }

    /// Bytes of all content, and how many it may have; nil: any number.
    package var usage: (bytes: Int64, limit: Int64?) {
        (used.load(ordering: .relaxed).addingClamped(unfinished), room.withLock(\.limit))
    }

    // MARK: Inside

    /// More content is known than may be.
    var isOverLimit: Bool { limitShortage(0) != nil }

    /// Refuses by name what cannot have room, whatever goes for it. Nothing does yet: content that is only announced may
    /// never come.
    func checkRoom(for bytes: UInt64, _ asker: SpaceRequest) throws(CacheError) {
        guard let shortage = try shortage(announced: bytes, asker) else { return }
        try makingRoom.withLock { _ throws(CacheError) in _ = try expendable(for: shortage, asker) }
    }

    /// Has old content go until there is room for all that is there; if that is not enough, none goes.
    ///
    /// - Parameter size: the bytes of the candidate that it is for, as far as they are there.
    /// - Throws: ``CacheError/overLimit(bytes:kept:limit:)``, ``CacheError/noSpace(path:available:reserve:)``.
    func makeRoom(for size: Int64, _ asker: SpaceRequest) throws(CacheError) {
        guard let first = try shortage(size, asker) else { return }
        var removed = RemovedContent(pipeline: asker.pipeline)
        defer { if !removed.items.isEmpty { tellRemoved(removed) } }
        var attempt = 0
        while try !makeRoom(for: size, first, asker, &removed, isLast: false) {
            guard waitForRoom(attempt) else {
                _ = try makeRoom(for: size, first, asker, &removed, isLast: true)
                return
            }
            attempt += 1
        }
    }

    /// How often it is waited for pipelines at work, and how long each time: about as long as a slow disk takes for a commit.
    private static let (roomAttempts, roomWait) = (100, UInt32(50_000))

    static func waitForRoom(_ attempt: Int) -> Bool {
        guard attempt < roomAttempts else { return false }
        usleep(roomWait)
        return true
    }

    /// - Parameter isLast: what pipelines at work have is not waited for any more.
    /// - Returns: false: there would be room if pipelines were not at work with what may go. Commits at once hold their
    ///   pipelines' locks; none of those is waited for with a lock that they may wait for.
    private func makeRoom(
        for size: Int64, _ first: MissingSpace, _ asker: SpaceRequest, _ removed: inout RemovedContent, isLast: Bool
    ) throws(CacheError) -> Bool {
        try makingRoom.withLock { _ throws(CacheError) in
            // Pipelines that are at work with their content.
            var busy: Set<String> = []
            // Another round if one of them was, if somebody still has open what was removed, or if others write meanwhile.
            while let shortage = try shortage(size, asker) {
                let content: [RemovableContent]
                do throws(CacheError) {
                    content = try expendable(for: shortage, asker, passingOver: busy)
                } catch {
                    guard !isLast, !busy.isEmpty else { throw error }
                    // If it would not be enough either, that is said.
                    _ = try expendable(for: shortage, asker)
                    return false
                }
                // What was removed may be free later than it is gone: more would go for nothing.
                if shortage.isOfDisk, removed.bytes >= first.bytes { throw shortage.error(0) }
                try remove(content, for: asker, &removed, &busy)
            }
            return true
        }
    }

    /// Has content go that is beyond the limit, as far as it may.
    func applyLimit() throws(CacheError) {
        var removed = RemovedContent()
        defer { if !removed.items.isEmpty { tellRemoved(removed) } }
        try makingRoom.withLock { _ throws(CacheError) in
            var busy: Set<String> = []
            while let shortage = limitShortage(0) {
                let passedOver = busy
                let content = try withIndex { (index) throws(SQLiteError) in
                    try index.expendable(shortage.bytes, for: nil, passingOver: passedOver)
                }
                if content.isEmpty { return }
                try remove(content, for: nil, &removed, &busy)
            }
        }
    }

    /// Notes how much content the index knows.
    func measure() throws(CacheError) {
        try withIndex { (index) throws(SQLiteError) in try self.measure(&index) }
    }

    func measure(_ index: inout CacheIndex) throws(SQLiteError) {
        used.store(try index.usage(), ordering: .relaxed)
    }

    /// What is missing.
    private struct MissingSpace {
        var bytes: Int64
        /// Of the file system, not of the cache's limit.
        var isOfDisk = false
        /// - Parameter expendable: how much could go.
        var error: (_ expendable: Int64) -> CacheError
    }

    /// - Parameters:
    ///   - size: the bytes of the candidate that are there.
    ///   - announced: further ones.
    private func shortage(
        _ size: Int64 = 0, announced: UInt64 = 0, _ asker: SpaceRequest
    ) throws(CacheError) -> MissingSpace? {
        let byLimit = limitShortage(size, announced: announced)
        let reserve = room.withLock(\.reserve)
        if reserve == .none { return byLimit }
        let path = layout.cacheDirectory
        let space = try onFiles { (files) throws(SystemCallError) in try files.space(path) }
        let needed = reserve.bytes(of: space.total)
        // The limit is on content; what is made of it takes the room of the disk as well.
        let whole = UInt64(clamping: size).addingWithLimit(announced)
        let further = asker.makesDirectory ? announced.addingWithLimit(whole) : announced
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

    /// What goes for it.
    ///
    /// - Throws: the shortage's error, if all that may go is not enough.
    private func expendable(
        for shortage: MissingSpace, _ asker: SpaceRequest, passingOver busy: Set<String> = []
    ) throws(CacheError) -> [RemovableContent] {
        let spared = asker.source
        let layout = layout
        let content = try withIndex { (index) throws(SQLiteError) in
            try index.expendable(shortage.bytes, for: asker, passingOver: busy) { layout.path(of: $0) == spared }
        }
        let bytes = content.reduce(Int64(0)) { $0.addingClamped($1.size) }
        guard bytes >= shortage.bytes else { throw shortage.error(bytes) }
        return content
    }

    /// Removes content whose pipelines are not at work with it.
    private func remove(
        _ content: [RemovableContent], for asker: SpaceRequest?, _ removed: inout RemovedContent,
        _ busy: inout Set<String>
    ) throws(CacheError) {
        for item in content where !busy.contains(item.pipeline) {
            let isRemoved: Bool
            if let asker, asker.holdsLock, asker.pipeline == item.pipeline {
                isRemoved = try remove(item)
            } else {
                // Not waited for: whoever has that lock may be waiting for this one.
                isRemoved =
                    try entry(item.pipeline).state.withLockIfAvailable { (state) throws(CacheError) in
                        // Which one readers see is not known for certain.
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
                    refused: item.number == nil ? item.digest : nil))
        }
    }

    private func remove(_ item: RemovableContent) throws(CacheError) -> Bool {
        let isForgotten = try contentTransaction { (index) throws(SQLiteError) in try index.forget(item) }
        // What is left over is found at the next start.
        if isForgotten { try? fileSystem.unlink(layout.path(of: item)) }
        // The directory of several files may be the one that somebody reads still: it goes with the next commit.
        return isForgotten
    }
}

extension UInt64 {
    /// The sum, or the largest number there is.
    fileprivate func addingWithLimit(_ other: UInt64) -> UInt64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}

extension CacheLayout {
    fileprivate func path(of content: RemovableContent) -> String {
        guard let stored = content.stored else { return refused(content.digest, of: content.pipeline) }
        return generation(stored, of: content.pipeline)
    }
}
