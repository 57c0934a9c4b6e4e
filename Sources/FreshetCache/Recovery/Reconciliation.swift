import FreshetModel

/// The files of one pipeline in the cache directory.
struct PipelineOnDisk: Hashable, Sendable {
    struct Content: Hashable, Sendable {
        var content: StoredContent
        var inode: UInt64
    }

    var generations: [Content] = []
    /// Temporary names of commits in progress.
    var temporaries: [DirectoryEntry] = []
    /// The published file; nil if there is none.
    var reader: FileStatus?
}

/// The rows of one pipeline in the index.
struct PipelineInIndex: Hashable, Sendable {
    var current: Int64?
    var lastNumber: Int64 = 0
    var generations: [IndexedGeneration] = []
    /// The pinned content.
    var pin: StoredContent?
    /// Whether the current generation was withdrawn because it is too old.
    var isWithdrawn = false
}

/// The changes that make the published file and the index agree on one complete generation.
///
/// A crash at any step of a commit (see `GenerationPublisher.publish`) leaves one of a few states; damage and
/// administrators add a few more:
///
/// | the published file is | the index has | result |
/// | --- | --- | --- |
/// | the inode of a generation, undamaged | the same generation | no change |
/// | the inode of a generation, undamaged | another generation, or none | the index follows: readers have seen it |
/// | the inode of a candidate (a power cut undid its rename) | anything | it becomes a generation |
/// | another inode, same content (restored from a backup) | the generation with this content | it is accepted |
/// | missing, foreign or damaged | a generation whose content is kept | it is restored |
/// | missing, foreign or damaged | a generation that readers find by a former name | no change; no older one is used |
/// | missing, foreign or damaged | no kept content | no generation is current; all is fetched again |
/// | the inode of the current generation, foreign or damaged | a withdrawn generation | the file is removed |
/// | missing | a withdrawn generation | no change; none is current if its content is missing |
/// | missing, foreign or damaged | a pinned generation without content | none is current; nothing else is published |
/// | not known (its name was lost with the index) | nothing | content stays; none is current until the next commit |
///
/// Content that is missing in the index and has a higher number than the current generation was never published and is
/// removed; with a lower number it was published, and is added to the index again. (After a rollback the index has the
/// higher numbers; if the index is lost too, their content is removed.)
struct Reconciliation: Hashable, Sendable {
    enum Current: Hashable, Sendable {
        /// The index is right; there is nothing to do.
        case asIndexed
        /// The content is undamaged, but the file is not the one that was last verified.
        case verified(StoredContent)
        /// The index follows the published file.
        case followed(StoredContent)
        /// The published file is a candidate of that name: it becomes this generation.
        case promoted(StoredContent, temporary: String)
        /// The published file is restored from this generation.
        case restored(StoredContent)
        /// There is no undamaged content.
        case lost
        /// The pinned or withdrawn generation is missing, and no other takes its place.
        case withheld
        /// The current generation is withdrawn: the file in its place is removed.
        case hidden
    }

    var current: Current
    /// Content to add to the index again.
    var adopted: [StoredContent] = []
    /// Numbers whose content is missing.
    var forgotten: [Int64] = []
    /// Content that was never published.
    var unpublished: [StoredContent] = []
    /// Temporary names to remove.
    var temporaries: [String] = []

    /// Compares the index and the disk.
    ///
    /// - Parameters:
    ///   - hasFile: whether the name of the published file is known.
    ///   - verifiesAll: compute digests even if the file is the one that was committed.
    ///   - readerDigest: returns the digest of the published file; nil if it is missing. Called at most once.
    ///   - canRestore: returns whether the content is undamaged. Called until it returns true.
    ///   - livesElsewhere: returns whether readers find the content by another name, from before the pipeline had this
    ///     one. Called for each content before `canRestore`.
    init(
        index: PipelineInIndex, disk: PipelineOnDisk, hasFile: Bool, verifiesAll: Bool,
        readerDigest: () throws(CacheError) -> ContentDigest?,
        canRestore: (StoredContent) throws(CacheError) -> Bool,
        hasOtherName: (StoredContent) throws(CacheError) -> Bool = { _ in false }
    ) throws(CacheError) {
        current = try Self.current(
            index: index, disk: disk, hasFile: hasFile, verifiesAll: verifiesAll, readerDigest: readerDigest,
            canRestore: canRestore, hasOtherName: hasOtherName)
        for entry in disk.temporaries {
            if case .promoted(_, let name) = current, name == entry.name { continue }
            temporaries.append(entry.name)
        }
        if case .lost = current {
            // No content is undamaged, or none could be restored: all is removed, and numbers continue after the last.
            forgotten = index.generations.map(\.content.number)
            unpublished = disk.generations.map(\.content)
            return
        }
        if Self.isComplete(index, disk) { return }
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

    /// Whether the disk has the content of all rows and no other. Only few are compared with each other.
    private static func isComplete(_ index: PipelineInIndex, _ disk: PipelineOnDisk) -> Bool {
        guard index.generations.count == disk.generations.count, index.generations.count <= 16 else { return false }
        // The numbers of rows differ, and so do the names of files: the lists are equal if one contains the other.
        return index.generations.allSatisfy { row in disk.generations.contains { $0.content == row.content } }
    }

    private static func current(
        index: PipelineInIndex, disk: PipelineOnDisk, hasFile: Bool, verifiesAll: Bool,
        readerDigest: () throws(CacheError) -> ContentDigest?,
        canRestore: (StoredContent) throws(CacheError) -> Bool,
        hasOtherName: (StoredContent) throws(CacheError) -> Bool
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
                if try hasOtherName(pin) { return .asIndexed }
                if try canRestore(pin) { return .restored(pin) }
            }
            return index.current == nil ? .asIndexed : .withheld
        }
        // The current generation first, then the newest that was published.
        let known = index.generations.map(\.content).filter(present.contains).sorted { $0.number > $1.number }
        let isCurrent = { (content: StoredContent) in content.number == index.current }
        for content in known.filter(isCurrent) + known.filter({ !isCurrent($0) }) {
            // Older content would be a step back, and the next commit restores this content.
            if try hasOtherName(content) { return .asIndexed }
            if try canRestore(content) { return .restored(content) }
        }
        return index.current == nil && index.generations.isEmpty ? .asIndexed : .lost
    }

    /// Plans a pipeline whose copy is withdrawn in the index. The index is written before the file is removed, and
    /// before it is published again, so the index decides, unless readers have seen another generation since.
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

    /// The number of the generation that is current afterwards.
    private func shownNumber(_ index: PipelineInIndex) -> Int64? {
        switch current {
        case .asIndexed, .hidden: index.current
        case .verified(let content), .followed(let content), .promoted(let content, _), .restored(let content):
            content.number
        case .lost, .withheld: nil
        }
    }

    /// Whether there is nothing to do.
    var isEmpty: Bool {
        current == .asIndexed && adopted.isEmpty && forgotten.isEmpty && unpublished.isEmpty && temporaries.isEmpty
    }

    /// The generation whose content the published file has, by its digest; nil if there is none.
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
