import Synchronization

/// The local cache: plain files that anything can read, and an index of what the files cannot say.
///
/// All methods block on the file system or on SQLite, and so belong on a worker thread. All are safe to call from any
/// thread; commits of one pipeline are done one after another, those of different pipelines side by side. The state
/// directory's lock is held as long as this object, or a ``PendingGeneration`` of it, lives.
///
/// What is checked when: at the start, and each time before an offer or validators are handed out, the reader's file
/// must be the one that was committed (inode, size, times of modification and status change). If it is not, its digest
/// decides. `verifiesAll` at the start computes every digest. The directory may vanish at any time: what is gone is
/// not offered, has no validators, and the next commit makes the directories again.
package final class LocalCache: Sendable {
    let layout: CacheLayout
    let fileSystem: any FileSystem
    /// How much room there is: see ``setRoom(_:)``.
    let room: Mutex<CacheQuota>
    /// Whoever makes room is alone with that. Taken after the lock of the pipeline that it is for.
    let makingRoom = Mutex<Void>(())
    /// Waits a moment for pipelines that are at work with what may go for room; false: it was long enough.
    ///
    /// - Parameter attempt: how often it was waited before.
    let waitForRoom: @Sendable (_ attempt: Int) -> Bool
    /// Told what was removed for room.
    let tellRemoved: @Sendable (RemovedContent) -> Void
    /// Bytes of all content that the index knows, as of its last change.
    let used = Atomic<Int64>(0)
    let index: Mutex<CacheIndex>
    /// How often the index was replaced since the start, as it was found damaged: what the rows of a pipeline say counts
    /// only once they were compared with its files.
    let indexEpoch = Atomic<Int>(0)
    /// Told that the index was replaced, with its path.
    let tellRebuilt: @Sendable (RecoveryReport.Index, String) -> Void
    /// Commits under way at once share the flush of the directory that people read.
    let currentFlush = SharedFlush()
    /// And what is written into the index at once and is to outlast a power cut shares the flush of its log.
    let indexFlush = SharedFlush()
    private let lock: StateLock
    private let pipelines = Mutex<[String: PipelineEntry]>([:])
    private let tokens = Atomic<UInt64>(0)
    /// What an earlier process has left, and is still to be removed.
    let leftovers = Mutex(Leftovers())
    /// The tokens of temporary names that somebody is at work with, and the bytes that are there of each.
    private let living = Mutex<[UInt64: Int64]>([:])

    init(
        layout: CacheLayout, fileSystem: any FileSystem, room: CacheQuota, index: consuming CacheIndex,
        lock: consuming StateLock, waitForRoom: @escaping @Sendable (_ attempt: Int) -> Bool = LocalCache.waitForRoom,
        tellRemoved: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        tellRebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) {
        self.tellRebuilt = tellRebuilt
        self.waitForRoom = waitForRoom
        self.layout = layout
        self.fileSystem = fileSystem
        self.room = Mutex(room)
        self.tellRemoved = tellRemoved
        self.index = Mutex(index)
        self.lock = lock
    }

    /// Where the index is, for people.
    package var indexPath: String { layout.index }

    // MARK: Ownership

    /// Gives each pipeline of a configuration its file. Call it when a configuration was read, before its first run.
    ///
    /// A pipeline that is not listed loses a file that a listed one wants, and keeps everything else. Nothing is
    /// removed, and a pipeline whose file changed offers nothing until its next commit.
    ///
    /// - Parameter sets: the pipelines that keep several files: theirs is the stamp.
    /// - Throws: ``CacheError/fileOwned(file:owner:claimant:)`` and ``CacheError/invalidName(_:reason:)`` before
    ///   anything is changed.
    /// - Returns: the pipelines that had another file or none, or lost theirs. Their commits under way are of before: see
    ///   ``awaitCommits(of:)``.
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
            // All let go before any takes, so that two pipelines may exchange their files.
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

    /// Waits until commits of these pipelines that are under way have ended: none of them puts its content into the place of
    /// what another pipeline commits there afterwards. Without locks of pipelines.
    package func awaitCommits(of names: Set<String>) {
        for name in names { pipelines.withLock { $0[name] }?.state.withLock { _ in } }
    }

    // MARK: Writing

    /// Starts a candidate: an empty file aside, on the same file system.
    ///
    /// - Parameter size: how many bytes are expected; nil: that is not known.
    /// - Throws: among others ``CacheError/fileOwned(file:owner:claimant:)``,
    ///   ``CacheError/noSpace(path:available:reserve:)``, ``CacheError/noSpaceFor(bytes:path:available:reserve:)`` and
    ///   ``CacheError/overLimit(bytes:kept:limit:)``.
    package func begin(
        _ destination: CacheDestination, expecting size: UInt64? = nil
    ) throws(CacheError) -> PendingGeneration {
        try begin(destination, expecting: size, copying: nil)
    }

    /// - Parameter source: the file of the cache that it is to be a copy of; then the caller holds the pipeline's lock.
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
            let asker = SpaceRequest(
                destination, holdsLock: source != nil, copying: source,
                makesDirectory: try !hasSet(source, of: destination.pipeline))
            try checkRoom(for: size ?? 0, asker)
            return PendingGeneration(
                cache: self, destination: destination, asker: asker, token: token, path: path,
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

    /// The destination's pipeline owns the destination's file from now on, or somebody else does.
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

    /// What the pipeline offers now; nil if it has nothing, or if that is gone or damaged.
    package func current(_ pipeline: String) throws(CacheError) -> Generation? {
        try offer(of: pipeline).map { $0.generation(path: layout.reader($0.file)) }
    }

    /// The content of what the pipeline offers now, or has withdrawn; nil if it has nothing, or if that has more bytes than
    /// the limit.
    package func content(of pipeline: String, limit: Int64) throws(CacheError) -> [UInt8]? {
        guard let offer = try keptOffer(of: pipeline), offer.generation.identity.size <= limit else { return nil }
        var content: [UInt8] = []
        content.reserveCapacity(Int(clamping: min(offer.generation.identity.size, 1 << 26)))
        // By its own name: another generation may be offered while this one is read.
        let stored = layout.generation(offer.generation.content, of: pipeline)
        let isThere = try fileSystem.readFile(stored) { (bytes) throws(CacheError) in content += bytes }
        return isThere ? content : nil
    }

    /// What a request for `url` may be made conditional with: nil unless they belong to this URL and to exactly the
    /// content that is offered now or withdrawn, or, if that stays although the origin has other content, to that content.
    package func validators(_ pipeline: String, url: String) throws(CacheError) -> Validators? {
        guard let offer = try keptOffer(of: pipeline) else { return nil }
        return try withIndex { (index) throws(SQLiteError) in
            try index.validators(url: url, for: offer.checkedDigest, of: offer.pipeline.id)
        }
    }

    // MARK: Inside

    /// For a temporary name that nobody else has, until it is released.
    func makeToken() -> UInt64 {
        let token = tokens.wrappingAdd(1, ordering: .relaxed).newValue
        living.withLock { $0[token] = 0 }
        return token
    }

    /// Tokens from now on are higher than this one: its name is taken.
    func skip(_ token: UInt64) {
        _ = tokens.max(token, ordering: .relaxed)
    }

    func release(_ token: UInt64) { living.withLock { $0[token] = nil } }

    /// So many bytes are there now by this temporary name. Of one that has a generation's name too it is none: the index
    /// counts that.
    func weigh(_ token: UInt64, _ bytes: Int64) { living.withLock { if $0[token] != nil { $0[token] = bytes } } }

    /// The bytes of all that is being written.
    var unfinished: Int64 { living.withLock { $0.values.reduce(0, +) } }

    /// Whether somebody is at work with a temporary name.
    func isLiving(_ name: String) -> Bool {
        CacheLayout.token(of: name).map { token in living.withLock { $0[token] != nil } } ?? false
    }

    func entry(_ pipeline: String) -> PipelineEntry {
        pipelines.withLock { entries in
            if let known = entries[pipeline] { return known }
            let made = PipelineEntry()
            entries[pipeline] = made
            return made
        }
    }

    /// The index may be behind the files: see ``PipelineEntry/State/isSuspect``.
    func isSuspect(_ pipeline: String) -> Bool {
        let epoch = indexEpoch.load(ordering: .acquiring)
        return pipelines.withLock { $0[pipeline] }?.state.withLock { $0.isSuspect || $0.epoch != epoch } ?? (epoch > 0)
    }

    func withIndex<Value: Sendable>(
        _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var replaced: RecoveryReport.Index?
        defer { if let replaced { tellRebuilt(replaced, layout.index) } }
        do throws(SQLiteError) {
            return try index.withLock { (index) throws(SQLiteError) in
                do throws(SQLiteError) {
                    return try body(&index)
                } catch {
                    // With the lock still held: of two who find it damaged, the second has the new one.
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

    /// A transaction in which content comes or goes. How much there is is noted once that is committed, and not before.
    ///
    /// - Parameter token: that of a candidate whose bytes the index counts from then on.
    func contentTransaction<Value: Sendable>(
        isDurable: Bool = false, of token: UInt64? = nil, _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try withIndex { (index) throws(SQLiteError) in
            let value = try index.transaction(isDurable: isDurable, body)
            if let token { self.weigh(token, 0) }
            // It is done whatever comes of this; the next one notes it too.
            try? self.measure(&index)
            return value
        }
    }

    /// Maps what the system refused; no room has a name of its own.
    func onFiles<Value>(
        _ body: (any FileSystem) throws(SystemCallError) -> Value
    ) throws(CacheError) -> Value {
        do throws(SystemCallError) {
            return try body(fileSystem)
        } catch {
            throw refusal(error)
        }
    }

    func refusal(_ error: SystemCallError) -> CacheError {
        guard error.isFull else { return .fileSystem(error) }
        let space = try? fileSystem.space(layout.cacheDirectory)
        let reserve = room.withLock(\.reserve)
        return .noSpace(
            path: error.path, available: space?.available ?? 0, reserve: space.map { reserve.bytes(of: $0.total) } ?? 0)
    }
}

/// What this process knows of a pipeline beside the index. Its lock makes commits and checks of one pipeline take
/// turns; it is taken before the index's.
final class PipelineEntry: Sendable {
    struct State: Sendable {
        /// A commit failed between its first rename and its end: the index must be compared with the files first.
        var isSuspect = false
        /// The ``LocalCache/indexEpoch`` of which the index was compared with the files.
        var epoch = 0
        /// A reader's file whose digest was found wrong: it is not read again to learn the same.
        var refuted: FileIdentity?
        private var turns: UInt64 = 0

        /// Counts what is done to the copy: see ``Generation/turn``.
        mutating func takeTurn() -> UInt64 {
            turns += 1
            return turns
        }
    }

    let state = Mutex(State())
}
