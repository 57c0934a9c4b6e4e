package import FreshetModel
import Synchronization

/// The local cache: plain files that any program can read, and an index of the state that the files do not contain.
///
/// This type connects the collaborators, which share one ``CacheContext``; its properties are their faces. All their
/// methods block on the file system or on SQLite, so they must be called on a worker thread. All are safe to call from
/// any thread; commits of one pipeline run one after another, those of different pipelines in parallel. The lock of the
/// state directory is held as long as this object, or a ``PendingGeneration`` of it, lives.
///
/// At the start, and each time before a generation or validators are returned, the published file must be the one that
/// was committed (inode, size, times of modification and status change). If it is not, its digest decides. With
/// `verifiesAll`, the start computes every digest. The directory may vanish at any time: missing content is not
/// published and has no validators, and the next commit makes the directories again.
package final class LocalCache: Sendable {
    let context: CacheContext
    let sets: FileSetStore
    let access: AccessRights
    let verifier: PublicationVerifier
    let start: StartRecovery
    private let candidates: CandidateStore
    private let committer: Committer
    /// What the start has compared and read; nil after ``memoriesAtStart(key:)``.
    private let compared = Mutex<(copies: ComparedCopies, memories: IndexedMemories?, key: String)?>(nil)

    package let ownership: FileOwnership
    package let space: CacheSpace
    package let generations: GenerationStore
    package let rejections: RejectedStore
    package let withdrawals: CopyWithdrawal
    package let records: RecordStore
    package let checks: CheckMemory
    package let checker: CacheChecker
    package let pruner: CachePruner
    package let leftovers: LeftoverFiles

    init(
        _ context: CacheContext, waitForSpace: @escaping @Sendable (_ attempt: Int) -> Bool = CacheSpace.wait,
        onRemoval: @escaping @Sendable (RemovedContent) -> Void = { _ in }
    ) {
        self.context = context
        ownership = FileOwnership(context: context)
        space = CacheSpace(context, waitForSpace: waitForSpace, onRemoval: onRemoval)
        leftovers = LeftoverFiles(context)
        let published = PublishedFiles(context: context)
        let writer = FileSetWriter(context: context)
        sets = FileSetStore(context: context, writer: writer, leftovers: leftovers)
        access = AccessRights(context: context, published: published, sets: sets)
        let recovery = CacheRecovery(
            context: context, published: published, sets: sets, access: access, leftovers: leftovers)
        start = StartRecovery(context: context, recovery: recovery, sets: sets, space: space, leftovers: leftovers)
        verifier = PublicationVerifier(context: context, published: published, sets: sets, recovery: recovery)
        candidates = CandidateStore(context: context, ownership: ownership, sets: sets, space: space)
        let publisher = GenerationPublisher(
            context: context, ownership: ownership, candidates: candidates, published: published, sets: sets,
            access: access, recovery: recovery, verifier: verifier, space: space)
        let rejected = RejectedFiles(context: context)
        committer = Committer(
            context: context, verifier: verifier, access: access, publisher: publisher, ownership: ownership,
            rejected: rejected)
        let opener = ContentOpener(context: context, published: published)
        generations = GenerationStore(context: context, verifier: verifier, publisher: publisher, opener: opener)
        rejections = RejectedStore(
            context: context, committer: committer, publisher: publisher, opener: opener, space: space, files: rejected)
        withdrawals = CopyWithdrawal(
            context: context, ownership: ownership, verifier: verifier, published: published, sets: sets,
            access: access, recovery: recovery)
        checks = CheckMemory(context: context)
        records = RecordStore(context: context, verifier: verifier, rejected: rejected)
        checker = CacheChecker(
            context: context, setChecker: FileSetChecker(context: context, sets: sets, writer: writer),
            repairer: CacheRepairer(context: context, sets: sets, recovery: recovery, verifier: verifier))
        pruner = CachePruner(context: context, sets: sets, checker: checker)
    }

    /// - Parameter memories: the stored states that were read before the comparison.
    func setCompared(_ copies: ComparedCopies, _ memories: IndexedMemories?, key: String) {
        compared.withLock { $0 = (copies, memories, key) }
    }

    /// The stored states of all pipelines: see ``RecordStore/memories(key:)``. Called immediately after the cache was
    /// opened, it does not look again at the published files that this has compared.
    package func memoriesAtStart(
        key: String
    ) throws(CacheError) -> (states: [String: PersistentState], unreadable: Set<String>) {
        let start = compared.withLock { compared in
            defer { compared = nil }
            return compared
        }
        guard let copies = start?.copies, try copies.areOf(context) else { return try records.memories(key: key) }
        if start?.key == key, let memories = start?.memories, memories.changes == copies.changes,
            memories.compared.allSatisfy(copies.pipelines.contains)
        {
            return records.finish(memories)
        }
        return records.finish(try records.indexedMemories(key: key, among: copies.pipelines))
    }

    /// The path of the index, for messages.
    package var indexPath: String { context.layout.index }

    /// The directory of the published files.
    package var publishedDirectory: String { context.layout.current }

    /// Starts a candidate: an empty file on the same file system.
    ///
    /// - Parameters:
    ///   - size: the expected number of bytes; nil if it is not known.
    ///   - isWhole: the caller has all bytes, and commits or rejects the candidate immediately. Then an error that needs
    ///     the index comes from there.
    /// - Throws: among others ``CacheError/fileOwned(file:owner:claimant:)``,
    ///   ``CacheError/noSpace(path:available:reserve:)``, ``CacheError/noSpaceFor(bytes:path:available:reserve:)`` and
    ///   ``CacheError/overLimit(bytes:kept:limit:)``.
    package func begin(
        _ destination: CacheDestination, expecting size: UInt64? = nil, isWhole: Bool = false
    ) throws(CacheError) -> PendingGeneration {
        PendingGeneration(
            try candidates.begin(destination, expecting: size, isClaimed: isWhole), committer, rejections)
    }

    /// The published generation of the pipeline; nil if there is none, or if its file is missing or damaged.
    package func current(_ pipeline: String) throws(CacheError) -> CurrentGeneration? {
        try verifier.publication(of: pipeline).map { $0.generation(at: context.layout.location($0.file)) }
    }

    /// The content of the current generation, published or withdrawn; nil if there is none, or if it has more bytes
    /// than the limit.
    package func content(of pipeline: String, limit: Int64) throws(CacheError) -> [UInt8]? {
        guard let publication = try verifier.keptPublication(of: pipeline),
            publication.generation.identity.size <= limit
        else { return nil }
        var content: [UInt8] = []
        content.reserveCapacity(Int(clamping: min(publication.generation.identity.size, 1 << 26)))
        // Read by the generation's own name: another generation may be published meanwhile.
        let stored = context.layout.generation(publication.generation.content, of: pipeline)
        let isThere = try context.fileSystem.readFile(stored) { (bytes) throws(CacheError) in content += bytes }
        return isThere ? content : nil
    }

    /// Whether the copy, published or withdrawn, is undamaged and has this digest.
    package func isCopy(_ pipeline: String, _ digest: ContentDigest) throws(CacheError) -> Bool {
        try CacheName.check(pipeline)
        return try verifier.keptPublication(of: pipeline)?.generation.content.digest == digest
    }

    /// The validators for a conditional request with this binding. Nil unless they belong to this binding and to exactly
    /// the content of the current generation, or, if that is held back, to the origin's content.
    package func validators(_ pipeline: String, boundTo binding: String) throws(CacheError) -> Validators? {
        let (entry, epoch) = (context.entry(pipeline), context.index.epoch)
        let version = entry.version
        guard let publication = try verifier.keptPublication(of: pipeline) else { return nil }
        let validators = try context.withIndex { (index) throws(SQLiteError) in
            try index.validators.row(boundTo: binding, for: publication.checkedDigest, of: publication.pipeline.id)
        }
        if let version, let validators,
            let copy = CheckedCopy(publication, BoundValidators(binding: binding, validators), epoch: epoch)
        {
            entry.remember(copy, since: version)
        }
        return validators
    }

    /// Sets the mode and group of the published file: a changed configuration takes effect before there is new content.
    /// Does nothing if there is no copy, or if it has another name.
    package func setAccess(_ destination: CacheDestination) throws(CacheError) {
        try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            guard let publication = try verifier.keptPublication(of: destination.pipeline, &state),
                publication.file == destination.file
            else { return }
            var generation = publication.generation
            generation.identity = try access.set(of: publication, to: destination)
            guard generation.identity != publication.generation.identity else { return }
            let (row, id) = (generation, publication.pipeline.id)
            try context.withIndex { (index) throws(SQLiteError) in try index.update(row, of: id) }
        }
    }

    /// The process is about to end: from now on, all methods together wait at most this long for another process that
    /// has locked the index. ``flush()`` reports what could not be stored.
    package func limitWaits(to duration: Duration) { context.index.limitWaits(to: duration) }

    /// Whether ``limitWaits(to:)`` was called.
    package var isEnding: Bool { context.index.isEnding }

    /// Writes the log of the index to its file, so that the release of this object does not wait for the disk. Call it
    /// at the end, on a worker; a failure only costs that time.
    package func flush() { context.index.checkpoint() }
}
