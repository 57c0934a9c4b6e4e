/// What the cache directory holds of one pipeline.
struct PipelineOnDisk: Hashable, Sendable {
    struct Content: Hashable, Sendable {
        var content: StoredContent
        var inode: UInt64
    }

    var generations: [Content] = []
    /// Names that only a commit under way has.
    var temporaries: [DirectoryEntry] = []
    /// The reader's file; nil if there is none.
    var reader: FileStatus?
}

/// What the index holds of one pipeline.
struct PipelineInIndex: Hashable, Sendable {
    var current: Int64?
    var lastNumber: Int64 = 0
    var generations: [IndexedGeneration] = []
    /// What the pipeline is pinned at.
    var pin: StoredContent?
    /// Readers are to find nothing, since the current generation is too old.
    var isWithdrawn = false
}

/// What must be done so that the reader's file and the index agree on one whole generation.
///
/// The order of a commit (see `LocalCache.commit`) leaves few pictures after a crash, and damage and
/// administrators a few more:
///
/// | the reader's file is | the index says | so |
/// | --- | --- | --- |
/// | the inode of a generation, intact | the same | nothing |
/// | the inode of a generation, intact | another, or nothing | the index follows: readers have seen it already |
/// | the inode of a candidate (a directory's change was lost in a power cut) | anything | it becomes a generation |
/// | another inode with the content of the index's generation (restored from a backup) | that one | it is accepted |
/// | gone, foreign or damaged | a generation whose content is still there | it is put back |
/// | gone, foreign or damaged | a generation that readers find by a former name | nothing, and nothing older either |
/// | gone, foreign or damaged | no content that is there | no generation is current; all is fetched again |
/// | the inode of the current generation, foreign or damaged | that this is withdrawn | it is taken away |
/// | gone | that the current generation is withdrawn | nothing; none is current if its content is gone |
/// | gone, foreign or damaged | a pinned generation whose content is gone | none is current, and other content stays aside |
/// | not known (its name went with a lost index) | nothing | content stays, none is current until the next commit |
///
/// Content with a higher number than the current one that the index does not know was never published and is removed;
/// with a lower one it was, and is known again. (After a rollback the index knows the higher ones; if it is lost as well,
/// they go.)
struct Reconciliation: Hashable, Sendable {
    enum Current: Hashable, Sendable {
        /// As the index says, and nothing to do.
        case asIndexed
        /// Intact, but the file is not the one that was looked at before.
        case verified(StoredContent)
        /// The index follows the reader's file.
        case followed(StoredContent)
        /// A candidate of that name is what readers see: it becomes this generation.
        case promoted(StoredContent, temporary: String)
        /// The reader's file is made anew from this generation.
        case restored(StoredContent)
        /// Nothing whole is there.
        case lost
        /// The pinned generation is not there, or the withdrawn one, and no other takes its place.
        case withheld
        /// The current generation is withdrawn: what stands in its place is taken away.
        case hidden
    }

    var current: Current
    /// Content that the index shall know again.
    var adopted: [StoredContent] = []
    /// Numbers whose content is gone.
    var forgotten: [Int64] = []
    /// Content that was never published.
    var unpublished: [StoredContent] = []
    /// Names to remove.
    var temporaries: [String] = []

    /// Compares the two.
    ///
    /// - Parameters:
    ///   - hasFile: whether the name of the reader's file is known.
    ///   - verifiesAll: compute digests also where the file is the one that was committed.
    ///   - readerDigest: the digest of the reader's file; nil if it is gone. Asked at most once.
    ///   - canRestore: whether the content is intact and no other name of it lives. Asked until one is.
    ///   - livesElsewhere: whether readers find the content by another name, from before the pipeline had this one. Asked of
    ///     each before `canRestore` is.
    init(
        index: PipelineInIndex, disk: PipelineOnDisk, hasFile: Bool, verifiesAll: Bool,
        readerDigest: () throws(CacheError) -> ContentDigest?,
        canRestore: (StoredContent) throws(CacheError) -> Bool,
        livesElsewhere: (StoredContent) throws(CacheError) -> Bool = { _ in false }
    ) throws(CacheError) {
        current = try Self.current(
            index: index, disk: disk, hasFile: hasFile, verifiesAll: verifiesAll, readerDigest: readerDigest,
            canRestore: canRestore, livesElsewhere: livesElsewhere)
        for entry in disk.temporaries {
            if case .promoted(_, let name) = current, name == entry.name { continue }
            temporaries.append(entry.name)
        }
        if case .lost = current {
            // None of it is whole, or none of it could be put back: it goes, and numbers go on from the last.
            forgotten = index.generations.map(\.content.number)
            unpublished = disk.generations.map(\.content)
            return
        }
        let known = Set(index.generations.map(\.content))
        let knownNumbers = Set(index.generations.map(\.content.number))
        let present = Set(disk.generations.map(\.content))
        let shown = hasFile ? shownNumber(index) ?? index.pin?.number : .max
        for content in present.subtracting(known).sorted(by: { $0.number < $1.number }) {
            if case .followed(content) = current { continue }
            if let shown, content.number < shown, !knownNumbers.contains(content.number) {
                adopted.append(content)
            } else {
                unpublished.append(content)
            }
        }
        let missing = known.subtracting(present).sorted { $0.number < $1.number }
        for content in missing where content.number != shown || current == .withheld {
            forgotten.append(content.number)
        }
    }

    private static func current(
        index: PipelineInIndex, disk: PipelineOnDisk, hasFile: Bool, verifiesAll: Bool,
        readerDigest: () throws(CacheError) -> ContentDigest?,
        canRestore: (StoredContent) throws(CacheError) -> Bool,
        livesElsewhere: (StoredContent) throws(CacheError) -> Bool
    ) throws(CacheError) -> Current {
        guard hasFile else { return .asIndexed }
        if index.isWithdrawn { return try withdrawn(index: index, disk: disk, readerDigest: readerDigest) }
        let indexed = index.current.flatMap { number in
            index.generations.first { $0.content.number == number }
        }
        if let reader = disk.reader, reader.isRegularFile {
            let isTheSame = indexed?.identity == reader.identity
            if isTheSame, !verifiesAll { return .asIndexed }
            if let digest = try readerDigest(),
                let found = explain(
                    digest, inode: reader.identity.inode, index: index, indexed: indexed, disk: disk)
            {
                if case .verified = found, isTheSame { return .asIndexed }
                return found
            }
        }
        let present = Set(disk.generations.map(\.content))
        if let pin = index.pin {
            if present.contains(pin) {
                if try livesElsewhere(pin) { return .asIndexed }
                if try canRestore(pin) { return .restored(pin) }
            }
            return index.current == nil ? .asIndexed : .withheld
        }
        // The current one first, then the newest that was published.
        let known = index.generations.map(\.content).filter(present.contains).sorted { $0.number > $1.number }
        let isCurrent = { (content: StoredContent) in content.number == index.current }
        for content in known.filter(isCurrent) + known.filter({ !isCurrent($0) }) {
            // Older content would be a step back, and this is put back by the next commit.
            if try livesElsewhere(content) { return .asIndexed }
            if try canRestore(content) { return .restored(content) }
        }
        return index.current == nil && index.generations.isEmpty ? .asIndexed : .lost
    }

    /// The index says that readers find nothing. It is written before the file goes, and before it comes back, so that it
    /// decides, unless they have seen another generation since.
    private static func withdrawn(
        index: PipelineInIndex, disk: PipelineOnDisk, readerDigest: () throws(CacheError) -> ContentDigest?
    ) throws(CacheError) -> Current {
        let indexed = index.generations.first { $0.content.number == index.current }
        guard let reader = disk.reader else {
            let isThere = disk.generations.contains { $0.content == indexed?.content }
            return index.current == nil || isThere ? .asIndexed : .withheld
        }
        guard reader.isRegularFile, let digest = try readerDigest(),
            let found = explain(digest, inode: reader.identity.inode, index: index, indexed: indexed, disk: disk)
        else { return .hidden }
        switch found {
        case .followed, .promoted: return found
        case .asIndexed, .verified, .restored, .lost, .withheld, .hidden: return .hidden
        }
    }

    /// The number of the generation that is current once this is done.
    private func shownNumber(_ index: PipelineInIndex) -> Int64? {
        switch current {
        case .asIndexed, .hidden: index.current
        case .verified(let content), .followed(let content), .promoted(let content, _), .restored(let content):
            content.number
        case .lost, .withheld: nil
        }
    }

    /// Nothing to do.
    var isEmpty: Bool {
        current == .asIndexed && adopted.isEmpty && forgotten.isEmpty && unpublished.isEmpty && temporaries.isEmpty
    }

    /// Which generation the reader's file shows, by its digest; nil if none.
    private static func explain(
        _ digest: ContentDigest, inode: UInt64, index: PipelineInIndex, indexed: IndexedGeneration?,
        disk: PipelineOnDisk
    ) -> Current? {
        if let stored = disk.generations.first(where: { $0.inode == inode }) {
            guard stored.content.digest == digest else { return nil }
            return stored.content == indexed?.content ? .verified(stored.content) : .followed(stored.content)
        }
        if let temporary = disk.temporaries.first(where: { $0.inode == inode }) {
            let numbers = disk.generations.map(\.content.number) + index.generations.map(\.content.number)
            let number = IndexBounds.next(after: max(numbers.max() ?? 0, index.lastNumber))
            return .promoted(StoredContent(number: number, digest: digest), temporary: temporary.name)
        }
        if let indexed, indexed.content.digest == digest { return .verified(indexed.content) }
        return nil
    }
}
