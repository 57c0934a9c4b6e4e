package import FreshetModel
import Synchronization

/// The local cache: plain files that any program can read, and an index of the state that the files do not contain.
///
/// All methods block on the file system or on SQLite, so they must be called on a worker thread. All are safe to call
/// from any thread; commits of one pipeline run one after another, those of different pipelines in parallel. The lock
/// of the state directory is held as long as this object, or a ``PendingGeneration`` of it, lives.
///
/// At the start, and each time before a generation or validators are returned, the published file must be the one that
/// was committed (inode, size, times of modification and status change). If it is not, its digest decides. With
/// `verifiesAll`, the start computes every digest. The directory may vanish at any time: missing content is not
/// published and has no validators, and the next commit makes the directories again.
package final class LocalCache: Sendable {
    let layout: CacheLayout
    let fileSystem: any FileSystem
    /// The limits of disk space: see ``setQuota(_:)``.
    let quota: Mutex<CacheQuota>
    /// Held while space is freed, so that only one caller does it. Taken after the lock of the pipeline that needs the
    /// space.
    let freeingSpace = Mutex<Void>(())
    /// Waits a moment for pipelines that are busy with removable content; returns false if the wait must end.
    ///
    /// - Parameter attempt: the number of waits before.
    let waitForSpace: @Sendable (_ attempt: Int) -> Bool
    /// Called with the content that was removed to free space.
    let onRemoval: @Sendable (RemovedContent) -> Void
    /// The bytes of all content in the index, as of its last change.
    let used = Atomic<Int64>(0)
    let index: Mutex<CacheIndex>
    /// The number of times that a damaged index was replaced since the start. The rows of a pipeline are valid only
    /// after they were compared with its files.
    let indexEpoch = Atomic<Int>(0)
    /// Called after the index was replaced, with its path.
    let onRebuild: @Sendable (RecoveryReport.Index, String) -> Void
    /// Concurrent commits share the flush of the directory `current/`.
    let currentFlush = SharedFlush()
    /// Concurrent durable transactions share the flush of the index's log.
    let indexFlush = SharedFlush()
    private let lock: StateLock
    private let pipelines = Mutex<[String: PipelineEntry]>([:])
    private let tokens = Atomic<UInt64>(0)
    /// Files of an earlier process that still have to be removed.
    let leftovers = Mutex(Leftovers())
    /// The tokens of temporary names in use, and the bytes written to each.
    private let tokensInUse = Mutex<[UInt64: Int64]>([:])

    init(
        layout: CacheLayout, fileSystem: any FileSystem, quota: CacheQuota, index: consuming CacheIndex,
        lock: consuming StateLock, waitForSpace: @escaping @Sendable (_ attempt: Int) -> Bool = LocalCache.waitForSpace,
        onRemoval: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        onRebuild: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) {
        self.onRebuild = onRebuild
        self.waitForSpace = waitForSpace
        self.layout = layout
        self.fileSystem = fileSystem
        self.quota = Mutex(quota)
        self.onRemoval = onRemoval
        self.index = Mutex(index)
        self.lock = lock
    }

    /// The path of the index, for messages.
    package var indexPath: String { layout.index }

    /// The directory of the published files.
    package var publishedDirectory: String { layout.current }

    // MARK: Ownership

    /// Assigns a file to each pipeline of a configuration. Call it after a configuration was read, before its first
    /// run.
    ///
    /// A pipeline that is not listed loses a file that a listed pipeline needs, and keeps everything else. No file is
    /// removed, and a pipeline whose file changed has no published file until its next commit.
    ///
    /// - Parameter sets: the pipelines that keep several files: their file is the stamp.
    /// - Throws: ``CacheError/fileOwned(file:owner:claimant:)`` and ``CacheError/invalidName(_:reason:)`` before any
    ///   change.
    /// - Returns: the pipelines that had another file or none, or lost theirs. Their commits in progress use the old
    ///   file: see ``awaitCommits(of:)``.
    @discardableResult
    package func assign(
        _ files: [(pipeline: String, file: String)], sets: Set<String> = []
    ) throws(CacheError) -> Set<String> {
        try CacheName.check(files, sets: sets)
        let (moved, forgotten) = try contentTransaction {
            (index) throws(SQLiteError) -> (Set<String>, [OrphanedContent]) in
            var changed: [(pipeline: IndexedPipeline, file: String)] = []
            var forgotten: [OrphanedContent] = []
            let known = Dictionary(try index.pipelines().map { ($0.name, $0) }) { first, _ in first }
            for (name, file) in files {
                let pipeline = if let row = known[name] { row } else { try index.ensurePipeline(name) }
                if pipeline.file != file || pipeline.isSet != sets.contains(name) { changed.append((pipeline, file)) }
            }
            var moved = Set(changed.map(\.pipeline.name))
            // All files are released before any is assigned, so that two pipelines can exchange their files.
            for (pipeline, _) in changed { try index.setFile(nil, of: pipeline.id) }
            for (pipeline, file) in changed {
                for name in CacheIndex.names(of: file, isSet: sets.contains(pipeline.name)) {
                    if let owner = try index.owner(of: name), let other = try index.pipeline(owner) {
                        moved.insert(owner)
                        if let link = other.link { try index.addFormerSet(link, of: other) }
                        try index.setFile(nil, of: other.id)
                        try index.setCurrent(nil, of: other.id)
                    }
                }
            }
            for (pipeline, file) in changed {
                let content = try index.assign(file, isSet: sets.contains(pipeline.name), to: pipeline)
                if let content { forgotten.append(content) }
            }
            return (moved, forgotten)
        }
        removeForgotten(forgotten)
        return moved
    }

    /// Waits until the commits in progress of these pipelines have ended. Then none of them can overwrite content that
    /// another pipeline commits to the same file afterwards. Call it without holding locks of pipelines.
    package func awaitCommits(of names: Set<String>) {
        for name in names { pipelines.withLock { $0[name] }?.state.withLock { _ in } }
    }

    // MARK: Writing

    /// Starts a candidate: an empty file on the same file system.
    ///
    /// - Parameter size: the expected number of bytes; nil if it is not known.
    /// - Throws: among others ``CacheError/fileOwned(file:owner:claimant:)``,
    ///   ``CacheError/noSpace(path:available:reserve:)``, ``CacheError/noSpaceFor(bytes:path:available:reserve:)`` and
    ///   ``CacheError/overLimit(bytes:kept:limit:)``.
    package func begin(
        _ destination: CacheDestination, expecting size: UInt64? = nil
    ) throws(CacheError) -> PendingGeneration {
        try begin(destination, expecting: size, copying: nil)
    }

    /// - Parameter source: the file of the cache that is copied; then the caller holds the pipeline's lock.
    func begin(
        _ destination: CacheDestination, expecting size: UInt64? = nil, copying source: String?
    ) throws(CacheError) -> PendingGeneration {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        try claim(destination)
        let token = makeToken()
        let path = layout.candidate(token, of: destination.pipeline)
        let descriptor: Int32
        do throws(CacheError) {
            descriptor = try create(path, for: destination.pipeline)
        } catch {
            release(token)
            throw error
        }
        do throws(CacheError) {
            let spaceRequest = SpaceRequest(
                destination, holdsLock: source != nil, copying: source,
                makesDirectory: try !hasSet(source, of: destination.pipeline))
            try checkSpace(for: size ?? 0, spaceRequest)
            return PendingGeneration(
                cache: self, destination: destination, spaceRequest: spaceRequest, token: token, path: path,
                writer: CandidateWriter(descriptor: descriptor, hasher: try SHA256Hasher()))
        } catch {
            fileSystem.close(descriptor)
            try? fileSystem.unlink(path)
            release(token)
            throw error
        }
    }

    private func create(_ path: String, for pipeline: String) throws(CacheError) -> Int32 {
        do throws(SystemCallError) {
            return try fileSystem.createFile(path)
        } catch  where error.isMissing {
            return try onFiles { (files) throws(SystemCallError) in
                try self.makeDirectories(for: pipeline, files)
                return try files.createFile(path)
            }
        } catch {
            throw .fileSystem(error)
        }
    }

    /// Makes the pipeline the owner of the destination's file; throws if another pipeline owns it.
    func claim(_ destination: CacheDestination) throws(CacheError) {
        let known = try withIndex { (index) throws(SQLiteError) in try index.pipeline(destination.pipeline) }
        if let known, known.file == destination.file, known.isSet == destination.isSet { return }
        let names = CacheIndex.names(of: destination.file, isSet: destination.isSet)
        let (taken, forgotten) = try contentTransaction {
            (index) throws(SQLiteError) -> ((name: String, owner: String)?, OrphanedContent?) in
            for name in names {
                if let owner = try index.owner(of: name), owner != destination.pipeline { return ((name, owner), nil) }
            }
            let pipeline = try index.ensurePipeline(destination.pipeline)
            return (nil, try index.assign(destination.file, isSet: destination.isSet, to: pipeline))
        }
        if let taken {
            throw .fileOwned(file: taken.name, owner: taken.owner, claimant: destination.pipeline)
        }
        if let forgotten { removeForgotten([forgotten]) }
    }

    // MARK: Reading

    /// The published generation of the pipeline; nil if there is none, or if its file is missing or damaged.
    package func current(_ pipeline: String) throws(CacheError) -> CurrentGeneration? {
        try publication(of: pipeline).map { $0.generation(path: layout.reader($0.file)) }
    }

    /// The content of the current generation, published or withdrawn; nil if there is none, or if it has more bytes
    /// than the limit.
    package func content(of pipeline: String, limit: Int64) throws(CacheError) -> [UInt8]? {
        guard let publication = try keptPublication(of: pipeline), publication.generation.identity.size <= limit else {
            return nil
        }
        var content: [UInt8] = []
        content.reserveCapacity(Int(clamping: min(publication.generation.identity.size, 1 << 26)))
        // Read by the generation's own name: another generation may be published meanwhile.
        let stored = layout.generation(publication.generation.content, of: pipeline)
        let isThere = try fileSystem.readFile(stored) { (bytes) throws(CacheError) in content += bytes }
        return isThere ? content : nil
    }

    /// The validators for a conditional request with this binding. Nil unless they belong to this binding and to exactly
    /// the content of the current generation, or, if that is held back, to the origin's content.
    package func validators(_ pipeline: String, boundTo binding: String) throws(CacheError) -> Validators? {
        guard let publication = try keptPublication(of: pipeline) else { return nil }
        return try withIndex { (index) throws(SQLiteError) in
            try index.validators(boundTo: binding, for: publication.checkedDigest, of: publication.pipeline.id)
        }
    }

    // MARK: Inside

    /// Makes a token for a temporary name, which is unique until it is released.
    func makeToken() -> UInt64 {
        let token = tokens.wrappingAdd(1, ordering: .relaxed).newValue
        tokensInUse.withLock { $0[token] = 0 }
        return token
    }

    /// Makes all later tokens higher than this one, because its name is in use.
    func skip(_ token: UInt64) {
        _ = tokens.max(token, ordering: .relaxed)
    }

    func release(_ token: UInt64) { tokensInUse.withLock { $0[token] = nil } }

    /// Sets the number of bytes of a temporary file. It is 0 for a file that also has the name of a generation: the
    /// index counts those bytes.
    func setSize(_ token: UInt64, _ bytes: Int64) { tokensInUse.withLock { if $0[token] != nil { $0[token] = bytes } } }

    /// The bytes of all content that is being written.
    var unfinished: Int64 { tokensInUse.withLock { $0.values.reduce(0, +) } }

    /// Whether a temporary name is in use.
    func isInUse(_ name: String) -> Bool {
        CacheLayout.token(of: name).map { token in tokensInUse.withLock { $0[token] != nil } } ?? false
    }

    func entry(_ pipeline: String) -> PipelineEntry {
        pipelines.withLock { entries in
            if let known = entries[pipeline] { return known }
            let made = PipelineEntry()
            entries[pipeline] = made
            return made
        }
    }

    /// Whether the index may be older than the files: see ``PipelineEntry/State/isSuspect``.
    func isSuspect(_ pipeline: String) -> Bool {
        let epoch = indexEpoch.load(ordering: .acquiring)
        return pipelines.withLock { $0[pipeline] }?.state.withLock { $0.isSuspect || $0.epoch != epoch } ?? (epoch > 0)
    }

    func withIndex<Value: Sendable>(
        _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var replaced: RecoveryReport.Index?
        defer { if let replaced { onRebuild(replaced, layout.index) } }
        do throws(SQLiteError) {
            return try index.withLock { (index) throws(SQLiteError) in
                do throws(SQLiteError) {
                    return try body(&index)
                } catch {
                    // The lock is still held: if two callers find damage, the second one uses the new index.
                    if error.isDamage { replaced = self.replace(&index, because: error) }
                    throw error
                }
            }
        } catch {
            throw .index(error)
        }
    }

    func transaction<Value: Sendable>(
        isDurable: Bool = false, _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try withIndex { (index) throws(SQLiteError) in try index.transaction(isDurable: isDurable, body) }
    }

    /// A transaction that adds or deletes content. The size of all content is updated only after the commit.
    ///
    /// - Parameter token: the token of a candidate whose bytes the index counts from then on.
    func contentTransaction<Value: Sendable>(
        isDurable: Bool = false, of token: UInt64? = nil, _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try withIndex { (index) throws(SQLiteError) in
            let value = try index.transaction(isDurable: isDurable, body)
            if let token { self.setSize(token, 0) }
            // The transaction is committed even if this fails; the next one updates the size too.
            try? self.measure(&index)
            return value
        }
    }

    /// Converts errors of system calls; a full file system becomes ``CacheError/noSpace(path:available:reserve:)``.
    func onFiles<Value>(
        _ body: (any FileSystem) throws(SystemCallError) -> Value
    ) throws(CacheError) -> Value {
        do throws(SystemCallError) {
            return try body(fileSystem)
        } catch {
            throw cacheError(error)
        }
    }

    func cacheError(_ error: SystemCallError) -> CacheError {
        guard error.isFull else { return .fileSystem(error) }
        let space = try? fileSystem.space(layout.cacheDirectory)
        let reserve = quota.withLock(\.reserve)
        return .noSpace(
            path: error.path, available: space?.available ?? 0, reserve: space.map { reserve.bytes(of: $0.total) } ?? 0)
    }
}

/// The state of a pipeline that is only in memory. Its lock serializes commits and checks of one pipeline; it is taken
/// before the lock of the index.
final class PipelineEntry: Sendable {
    struct State: Sendable {
        /// Whether a commit failed between its first rename and its end: then the index must be compared with the files
        /// first.
        var isSuspect = false
        /// The ``LocalCache/indexEpoch`` in which the index was last compared with the files.
        var epoch = 0
        /// The identity of a published file whose digest was wrong: the file is not read again.
        var refuted: FileIdentity?
        private var revisions: UInt64 = 0

        /// Counts changes of the copy: see ``CurrentGeneration/revision``.
        mutating func nextRevision() -> UInt64 {
            revisions += 1
            return revisions
        }
    }

    let state = Mutex(State())
}
