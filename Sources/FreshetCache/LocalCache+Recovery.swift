/// What the start knows of all pipelines, so that it need not ask for each.
struct StartSnapshot: Sendable {
    /// What is in `current/`.
    let readers: [DirectoryEntry]
    private let readerNames: Set<String>
    /// The names below `generations/`.
    let directories: Set<String>
    private let rows: [String: IndexedPipeline]
    private let generations: [Int64: [IndexedGeneration]]
    /// The digests of what is kept aside.
    private let refused: [Int64: ContentDigest]

    init(
        readers: [DirectoryEntry], directories: Set<String>, rows: [IndexedPipeline],
        generations: [Int64: [IndexedGeneration]], refused: [(pipeline: Int64, refusal: IndexedRejection)]
    ) {
        self.refused = Dictionary(refused.map { ($0.pipeline, $0.refusal.digest) }) { first, _ in first }
        self.readers = readers
        readerNames = Set(readers.map(\.name))
        self.directories = directories
        self.rows = Dictionary(rows.map { ($0.name, $0) }) { first, _ in first }
        self.generations = generations
    }

    func row(_ pipeline: String) -> IndexedPipeline? { rows[pipeline] }
    func generations(of pipeline: Int64) -> [IndexedGeneration] { generations[pipeline] ?? [] }
    func hasReader(_ file: String) -> Bool { readerNames.contains(file) }

    /// What was refused, and is not what the index knows to be kept aside.
    func isLeftOver(_ entry: DirectoryEntry, of pipeline: String) -> Bool {
        guard let digest = CacheLayout.refusedDigest(entry.name) else { return false }
        return rows[pipeline].flatMap { refused[$0.id] } != digest
    }

    /// Neither the index nor the disk has anything of it: there is nothing to make agree.
    func isBare(_ pipeline: String) -> Bool {
        guard !directories.contains(pipeline) else { return false }
        guard let row = rows[pipeline] else { return true }
        return row.current == nil && generations[row.id] == nil
    }
}

extension LocalCache {
    /// Makes the pipeline's row and its files agree. Returns what was done; nil if nothing was to do.
    ///
    /// The caller holds the pipeline's lock, or is the start.
    ///
    /// - Parameters:
    ///   - start: at the start, what was found. Nil while running: then the candidates that lie about belong to writers
    ///     that live, and stay.
    ///   - verifiesAll: compute digests also where the file is the one that was committed.
    func reconcile(
        _ pipeline: String, start: StartSnapshot? = nil, verifiesAll: Bool = false
    ) throws(CacheError) -> PipelineRecovery? {
        var recovery = try reconcileContent(of: pipeline, start: start, verifiesAll: verifiesAll)
        // A row that the start has not seen was made from the files.
        let isSet = start?.row(pipeline)?.isSet ?? true
        if isSet, let number = try reconcileSet(of: pipeline, verifiesAll: verifiesAll) {
            if recovery == nil { recovery = PipelineRecovery(pipeline: pipeline, repairs: []) }
            recovery?.repairs.append(.shown(number))
        }
        return recovery
    }

    private func reconcileContent(
        of pipeline: String, start: StartSnapshot?, verifiesAll: Bool
    ) throws(CacheError) -> PipelineRecovery? {
        if let start, start.isBare(pipeline) { return nil }
        let row =
            if let start { start.row(pipeline) } else {
                try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
            }
        var indexed = PipelineInIndex(
            current: row?.current, lastNumber: row?.lastNumber ?? 0, pin: row?.pin?.content,
            isWithdrawn: row?.withdrawnAt != nil)
        if let row {
            indexed.generations =
                if let start { start.generations(of: row.id) } else {
                    try withIndex { (index) throws(SQLiteError) in try index.generations(of: row.id) }
                }
        }
        var disk = try contents(of: pipeline, start)
        if start == nil { disk.temporaries = [] }
        let file: String? = if let known = row?.file { known } else { try findFile(of: disk, among: start?.readers) }
        let reader = file.map(layout.reader)
        if let file, let reader, start?.hasReader(file) ?? true {
            disk.reader = try onFiles { (files) throws(SystemCallError) in try files.status(reader) }
        }
        let plan = try Reconciliation(
            index: indexed, disk: disk, hasFile: file != nil, verifiesAll: verifiesAll,
            readerDigest: { () throws(CacheError) in
                guard let reader else { return nil }
                return try self.fileSystem.digest(of: reader)
            },
            canRestore: { (content) throws(CacheError) in
                let path = self.layout.generation(content, of: pipeline)
                // A second name means that it is live elsewhere (a former cache.file): a further link would look like
                // a change there.
                guard let links = try self.lastingLinks(of: path), links == 1 else { return false }
                return try self.fileSystem.digest(of: path) == content.digest
            },
            livesElsewhere: { (content) throws(CacheError) in
                guard let inode = disk.generations.first(where: { $0.content == content })?.inode else { return false }
                let readers =
                    if let start { start.readers } else {
                        try self.onFiles { (files) throws(SystemCallError) in try files.list(self.layout.current) }
                    }
                return readers.contains {
                    $0.inode == inode && $0.name != file && !CacheLayout.isTemporary($0.name)
                }
            })
        if plan.isEmpty { return nil }
        try apply(plan, to: pipeline, as: row, file: file, indexed)
        return PipelineRecovery(pipeline: pipeline, repairs: plan.repairs)
    }

    /// How many names a file has but for those that a commit has left; nil: it is not there.
    private func lastingLinks(of path: String) throws(CacheError) -> UInt64? {
        while true {
            let before = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
            guard let before else { return nil }
            let temporary = try temporaryLinks(to: before.identity.inode)
            let after = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
            // Leftovers are removed meanwhile: then it is counted again.
            if after?.links == before.links { return before.links - min(before.links, temporary) }
        }
    }

    /// How many names of an inode a commit has left in `current/` between its link and its rename.
    private func temporaryLinks(to inode: UInt64) throws(CacheError) -> UInt64 {
        let names = try onFiles { (files) throws(SystemCallError) in try files.list(layout.current) }
        return UInt64(names.count { $0.inode == inode && CacheLayout.isTemporary($0.name) })
    }

    private func contents(of pipeline: String, _ start: StartSnapshot?) throws(CacheError) -> PipelineOnDisk {
        var disk = PipelineOnDisk()
        let directory = layout.generations(of: pipeline)
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            if CacheLayout.isTemporary(entry.name) || start?.isLeftOver(entry, of: pipeline) == true {
                disk.temporaries.append(entry)
            } else if let content = StoredContent(name: entry.name) {
                disk.generations.append(PipelineOnDisk.Content(content: content, inode: entry.inode))
            }
        }
        return disk
    }

    /// Which file a pipeline has that the index does not know: the one that is an inode of its generations. One that
    /// belongs to another pipeline by now is not it.
    private func findFile(
        of disk: PipelineOnDisk, among readers: [DirectoryEntry]?
    ) throws(CacheError) -> String? {
        let names: [DirectoryEntry] =
            if let readers { readers } else {
                try onFiles { (files) throws(SystemCallError) in try files.list(layout.current) }
            }
        let inodes = Set(disk.generations.map(\.inode) + disk.temporaries.map(\.inode))
        for entry in names where inodes.contains(entry.inode) && CacheName.fault(in: entry.name) == nil {
            let owner = try withIndex { (index) throws(SQLiteError) in try index.owner(of: entry.name) }
            if owner == nil { return entry.name }
        }
        return nil
    }

    /// Whether a file is the stamp of several, which the directories or the link tell where there is no index.
    func isOfSeveral(_ file: String, of pipeline: String) throws(CacheError) -> Bool {
        guard let link = CacheLayout.linkName(ofStamp: file) else { return false }
        if try isDirectory(layout.sets(of: pipeline)) { return true }
        return try onFiles { (_) throws(SystemCallError) in try shownSet(of: pipeline, at: link) != nil }
    }

    private func apply(
        _ plan: Reconciliation, to pipeline: String, as known: IndexedPipeline?, file: String?,
        _ indexed: PipelineInIndex
    ) throws(CacheError) {
        if plan.current == .hidden, let file { try hide(file) }
        var current: IndexedGeneration?
        if let content = plan.shown, let file {
            if case .restored = plan.current {
                let before = indexed.generations.first { $0.content.number == indexed.current }
                try keepClosed(content, of: pipeline, at: file, before?.content)
            }
            let identity = try onFiles { (files) throws(SystemCallError) in
                try self.show(plan.current, of: pipeline, file, files)
            }
            let known = indexed.generations.first { $0.content == content }
            current = IndexedGeneration(
                content: content, committedAt: known?.committedAt ?? WallTime(nanoseconds: identity.modified),
                run: known?.run, identity: identity, truncated: known?.truncated ?? false,
                contentExpires: known?.contentExpires)
        }
        var adopted: [IndexedGeneration] = []
        for content in plan.adopted {
            let path = layout.generation(content, of: pipeline)
            guard let status = try onFiles({ (files) throws(SystemCallError) in try files.status(path) }) else {
                continue
            }
            adopted.append(
                IndexedGeneration(
                    content: content, committedAt: WallTime(nanoseconds: status.identity.modified), run: nil,
                    identity: status.identity))
        }
        let (rows, shown) = (adopted, current)
        let isStamp = try file.map { (file) throws(CacheError) in try isOfSeveral(file, of: pipeline) } ?? false
        let isDone = try contentTransaction { (index) throws(SQLiteError) in
            let row = try index.ensurePipeline(pipeline)
            // A reload has given it another file since: this was about the one before.
            guard row.file == known?.file, row.isSet == known?.isSet ?? false else { return false }
            if let file, row.file == nil { _ = try index.assign(file, isSet: isStamp || row.isSet, to: row) }
            for number in plan.forgotten { try index.forget(generation: number, of: row.id) }
            for generation in rows { try index.put(generation, of: row.id) }
            if let shown {
                try index.put(shown, of: row.id)
                // Before validators go that are those of neither.
                if plan.isNews(to: indexed) { try index.forgetOrigin(of: row.id) }
                try index.setCurrent(shown.content, of: row.id)
            } else if plan.current == .lost || plan.current == .withheld {
                try index.setCurrent(nil, of: row.id)
            }
            return true
        }
        guard isDone else { throw .reassigned(pipeline) }
        try onFiles { (files) throws(SystemCallError) in
            for content in plan.unpublished { try files.unlink(self.layout.generation(content, of: pipeline)) }
        }
        for name in plan.temporaries { try remove(leftover: name, in: layout.generations(of: pipeline), of: pipeline) }
    }

    /// Brings the reader's file to what the plan wants; returns what it is then.
    private func show(
        _ current: Reconciliation.Current, of pipeline: String, _ file: String, _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let reader = layout.reader(file)
        switch current {
        case .promoted(let content, let temporary):
            try files.rename(
                layout.generations(of: pipeline) + "/" + temporary, to: layout.generation(content, of: pipeline))
            try files.synchronizeDirectory(layout.generations(of: pipeline))
        case .restored(let content):
            let token = makeToken()
            defer { release(token) }
            try files.replace(
                reader, withLinkTo: layout.generation(content, of: pipeline), by: layout.readerTemporary(token))
            try files.synchronizeDirectory(layout.current)
        case .followed:
            // Readers see it, but its names may not have reached the disk before the process ended.
            try files.synchronizeDirectory(layout.generations(of: pipeline))
            try files.synchronizeDirectory(layout.current)
        case .asIndexed, .verified, .lost, .withheld, .hidden:
            break  // the names are right, or there are none
        }
        guard let status = try files.status(reader) else {
            throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
        }
        return status.identity
    }
}

extension Reconciliation {
    /// Readers see content that a commit brought of which the index knows nothing: what it says of the origin is older.
    /// Not so what a rollback brought, which the index knows.
    fileprivate func isNews(to index: PipelineInIndex) -> Bool {
        switch current {
        case .followed(let content): !index.generations.contains { $0.content == content }
        // Its number is a new one, whatever made it.
        case .promoted(let content, _): !index.generations.contains { $0.content.digest == content.digest }
        case .asIndexed, .verified, .restored, .lost, .withheld, .hidden: false
        }
    }

    /// The generation whose row must be written; nil if the index has it right, or none is left.
    fileprivate var shown: StoredContent? {
        switch current {
        case .verified(let content), .followed(let content), .promoted(let content, _), .restored(let content): content
        case .asIndexed, .lost, .withheld, .hidden: nil
        }
    }

    fileprivate var repairs: [PipelineRecovery.Repair] {
        var repairs: [PipelineRecovery.Repair] = []
        switch current {
        case .asIndexed: break  // nothing to tell
        case .verified(let content): repairs.append(.verified(content.number))
        case .followed(let content), .promoted(let content, _): repairs.append(.followed(content.number))
        case .restored(let content): repairs.append(.restored(content.number))
        case .lost: repairs.append(.lost)
        case .withheld: repairs.append(.withheld)
        case .hidden: repairs.append(.hidden)
        }
        repairs += adopted.map { .adopted($0.number) }
        if current != .lost {
            repairs += forgotten.map { .forgotten($0) }
            repairs += unpublished.map { .removedUnpublished($0.number) }
        }
        if !temporaries.isEmpty { repairs.append(.removedCandidates(temporaries.count)) }
        return repairs
    }
}
