import FreshetModel

/// Makes the row of a pipeline and its files agree: at the start, after a commit that failed halfway, after the index
/// was replaced, and after repairs.
struct CacheRecovery: Sendable {
    let context: CacheContext
    let published: PublishedFiles
    let sets: FileSetStore
    let access: AccessRights
    let leftovers: LeftoverFiles

    /// Makes the pipeline's row and its files agree. Returns the repairs; nil if there was nothing to do.
    ///
    /// The caller holds the pipeline's lock, or is the start.
    ///
    /// - Parameters:
    ///   - start: the state at the start. Nil at run time: then candidates belong to active writers, and stay.
    ///   - verifiesAll: compute digests even if the file is the one that was committed.
    func reconcile(
        _ pipeline: String, start: StartSnapshot? = nil, verifiesAll: Bool = false
    ) throws(CacheError) -> PipelineRecovery? {
        var recovery = try reconcileContent(of: pipeline, start: start, verifiesAll: verifiesAll)
        // A row that did not exist at the start was made from the files.
        let isSet = start?.row(pipeline)?.isSet ?? true
        if isSet, let number = try sets.reconcile(of: pipeline, verifiesAll: verifiesAll) {
            if recovery == nil { recovery = PipelineRecovery(pipeline: pipeline, repairs: []) }
            recovery?.repairs.append(.shown(number))
        }
        return recovery
    }

    /// Makes the pipeline's row and its files agree while the daemon runs. After a change that failed halfway, the
    /// generation that readers see is reported when the lock is released.
    func repair(_ pipeline: String, _ state: inout PipelineEntry.State) throws(CacheError) {
        let epoch = context.index.epoch
        let repaired = try reconcile(pipeline)
        // A row of a new index is not new to the pipeline.
        if state.isSuspect, repaired?.hasFollowed == true { state.hasFollowed = true }
        if state.hasFollowed {
            let known = try context.reading { (index) throws(SQLiteError) in try index.publication(of: pipeline) }
            if let known, !known.isWithdrawn {
                let location = context.layout.location(known.file)
                state.followed = known.generation(at: location, revision: state.nextRevision())
            }
        }
        (state.isSuspect, state.hasFollowed, state.epoch) = (false, false, epoch)
    }

    /// Makes the index agree with what readers see now, after a change failed halfway. If that fails too, the pipeline
    /// stays suspect, and the next access retries it: its error occurs again then.
    func complete(_ pipeline: String, _ state: inout PipelineEntry.State) {
        do throws(CacheError) {
            try repair(pipeline, &state)
        } catch {
            // The caller reports the error of the change, which is the cause.
        }
    }

    private func reconcileContent(
        of pipeline: String, start: StartSnapshot?, verifiesAll: Bool
    ) throws(CacheError) -> PipelineRecovery? {
        if let start, start.hasNoContent(pipeline) { return nil }
        let row =
            if let start { start.row(pipeline) } else {
                try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(pipeline) }
            }
        var indexed = PipelineInIndex(
            current: row?.current, lastNumber: row?.lastNumber ?? 0, pin: row?.pin?.content,
            isWithdrawn: row?.withdrawnAt != nil)
        if let row {
            indexed.generations =
                if let start { start.generations(of: row.id) } else {
                    try context.withIndex { (index) throws(SQLiteError) in try index.generations.all(of: row.id) }
                }
        }
        var disk = try contents(of: pipeline, start)
        if start == nil { disk.temporaries = [] }
        let file: String? = if let known = row?.file { known } else { try findFile(of: disk, among: start?.readers) }
        let reader = file.map(context.layout.reader)
        if let file, let reader, start?.hasReader(file) ?? true {
            disk.reader = try context.onFiles { (files) throws(SystemCallError) in try files.status(reader) }
        }
        let plan = try Reconciliation(
            index: indexed, disk: disk, hasFile: file != nil, verifiesAll: verifiesAll,
            readerDigest: { () throws(CacheError) in
                guard let reader else { return nil }
                return try context.fileSystem.digest(of: reader)
            },
            canRestore: { (content) throws(CacheError) in
                // Only the content decides: the number of links of the file does not matter, because anyone can make
                // another link.
                try context.fileSystem.digest(of: context.layout.generation(content, of: pipeline)) == content.digest
            },
            hasOtherName: { (content) throws(CacheError) in
                // Content that readers have found by this name must be found by it again, even if it also has another
                // name.
                guard indexed.generations.first(where: { $0.content == content })?.identity.isOfFormerName == true,
                    let inode = disk.generations.first(where: { $0.content == content })?.inode
                else { return false }
                let readers =
                    if let start { start.readers } else {
                        try context.onFiles { (files) throws(SystemCallError) in
                            try files.list(context.layout.current)
                        }
                    }
                return readers.contains {
                    $0.inode == inode && $0.name != file && !CacheLayout.isTemporary($0.name)
                }
            })
        if plan.isEmpty { return nil }
        try apply(plan, to: pipeline, as: row, file: file, indexed)
        return PipelineRecovery(pipeline: pipeline, repairs: plan.repairs)
    }

    private func contents(of pipeline: String, _ start: StartSnapshot?) throws(CacheError) -> PipelineOnDisk {
        var disk = PipelineOnDisk()
        let directory = context.layout.generations(of: pipeline)
        for entry in try context.onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            if CacheLayout.isTemporary(entry.name) || start?.isLeftOver(entry, of: pipeline) == true {
                disk.temporaries.append(entry)
            } else if let content = StoredContent(name: entry.name) {
                disk.generations.append(PipelineOnDisk.Content(content: content, inode: entry.inode))
            }
        }
        return disk
    }

    /// Finds the published file of a pipeline that is missing in the index: it has the inode of one of its generations.
    /// A file that belongs to another pipeline now does not count.
    private func findFile(
        of disk: PipelineOnDisk, among readers: [DirectoryEntry]?
    ) throws(CacheError) -> String? {
        let names: [DirectoryEntry] =
            if let readers { readers } else {
                try context.onFiles { (files) throws(SystemCallError) in try files.list(context.layout.current) }
            }
        let inodes = Set(disk.generations.map(\.inode) + disk.temporaries.map(\.inode))
        for entry in names where inodes.contains(entry.inode) && CacheName.error(in: entry.name) == nil {
            let owner = try context.withIndex { (index) throws(SQLiteError) in
                try index.pipelines.owner(of: entry.name)
            }
            if owner == nil { return entry.name }
        }
        return nil
    }

    /// Whether a file is the stamp of several files. Without an index, the directories or the link show it.
    func isOfSeveral(_ file: String, of pipeline: String) throws(CacheError) -> Bool {
        guard let link = CacheLayout.linkName(ofStamp: file) else { return false }
        if try context.isDirectory(context.layout.sets(of: pipeline)) { return true }
        return try context.onFiles { (_) throws(SystemCallError) in try sets.shown(of: pipeline, at: link) != nil }
    }

    /// The causes in the history of content that was found on the disk because the index was lost or damaged.
    private static let adoptedCauses = "adopted"
    /// The causes in the history of content that readers saw before the index had it, as for hooks.
    private static let repairCauses = "repair"

    private func apply(
        _ plan: Reconciliation, to pipeline: String, as known: IndexedPipeline?, file: String?,
        _ indexed: PipelineInIndex
    ) throws(CacheError) {
        if plan.current == .hidden, let file { try published.hide(file) }
        var current: IndexedGeneration?
        if let content = plan.shown, let file {
            if case .restored = plan.current {
                let before = indexed.generations.first { $0.content.number == indexed.current }
                try access.keepClosed(content, of: pipeline, at: file, before?.content)
            }
            let identity = try context.onFiles { (files) throws(SystemCallError) in
                try show(plan.current, of: pipeline, file, files)
            }
            let known = indexed.generations.first { $0.content == content }
            current = IndexedGeneration(
                content: content, committedAt: known?.committedAt ?? WallTime(nanoseconds: identity.modified),
                run: known?.run, identity: identity, truncated: known?.truncated ?? false,
                contentExpires: known?.contentExpires)
        }
        var adopted: [IndexedGeneration] = []
        for content in plan.adopted {
            let path = context.layout.generation(content, of: pipeline)
            guard let status = try context.onFiles({ (files) throws(SystemCallError) in try files.status(path) }) else {
                continue
            }
            adopted.append(
                IndexedGeneration(
                    content: content, committedAt: WallTime(nanoseconds: status.identity.modified), run: nil,
                    identity: status.identity))
        }
        let (rows, shown) = (adopted, current)
        let isStamp = try file.map { (file) throws(CacheError) in try isOfSeveral(file, of: pipeline) } ?? false
        let (isDone, accepted) = try context.contentTransaction {
            (index) throws(SQLiteError) -> (Bool, ContentDigest?) in
            var accepted: ContentDigest?
            let row = try index.pipelines.ensure(pipeline)
            // A reload has assigned another file since; this plan is for the previous file.
            guard row.file == known?.file, row.isSet == known?.isSet ?? false else { return (false, nil) }
            if let file, row.file == nil { _ = try index.assign(file, isSet: isStamp || row.isSet, to: row) }
            for number in plan.forgotten { try index.generations.forget(number, of: row.id) }
            for generation in rows {
                try index.put(generation, of: row.id)
                try index.history.setUnknownCauses(
                    Self.adoptedCauses, ofGeneration: generation.content.number, of: row.id)
            }
            if let shown {
                try index.put(shown, of: row.id)
                if plan.isNew(to: indexed) {
                    try index.history.setUnknownCauses(
                        known == nil ? Self.adoptedCauses : Self.repairCauses, ofGeneration: shown.content.number,
                        of: row.id)
                }
                // This must be before validators of other content are deleted.
                if plan.isNew(to: indexed) { try index.pipelines.forgetOrigin(of: row.id) }
                try index.setCurrent(shown.content, of: row.id)
                // An operator has accepted it.
                if try index.rejected.row(of: row.id)?.digest == shown.content.digest {
                    try index.rejected.set(nil, of: row.id)
                    accepted = shown.content.digest
                }
            } else if plan.current == .lost || plan.current == .withheld {
                try index.setCurrent(nil, of: row.id)
            }
            return (true, accepted)
        }
        guard isDone else { throw .reassigned(pipeline) }
        try context.onFiles { (files) throws(SystemCallError) in
            if let accepted { try files.unlink(context.layout.rejected(accepted, of: pipeline)) }
            for content in plan.unpublished { try files.unlink(context.layout.generation(content, of: pipeline)) }
        }
        for name in plan.temporaries {
            try leftovers.remove(leftover: name, in: context.layout.generations(of: pipeline), of: pipeline)
        }
    }

    /// Changes the published file as planned. Returns its new identity.
    private func show(
        _ current: Reconciliation.Current, of pipeline: String, _ file: String, _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let reader = context.layout.reader(file)
        switch current {
        case .promoted(let content, let temporary):
            try files.rename(
                context.layout.generations(of: pipeline) + "/" + temporary,
                to: context.layout.generation(content, of: pipeline))
            try files.synchronizeDirectory(context.layout.generations(of: pipeline))
        case .restored(let content):
            let token = context.names.make()
            defer { context.names.release(token) }
            try published.link(context.layout.generation(content, of: pipeline), at: reader, by: token, files)
            try files.synchronizeDirectory(context.layout.current)
        case .followed:
            // Readers see it, but its names may not have been flushed before the process ended.
            try files.synchronizeDirectory(context.layout.generations(of: pipeline))
            try files.synchronizeDirectory(context.layout.current)
        case .asIndexed, .verified, .lost, .withheld, .hidden:
            break  // the names are right, or do not exist
        }
        guard let status = try files.status(reader) else {
            throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
        }
        return status.identity
    }
}

extension Reconciliation {
    /// Whether readers see content of a commit that is missing in the index: then the index's state of the origin is
    /// older. The content of a rollback is in the index.
    fileprivate func isNew(to index: PipelineInIndex) -> Bool {
        switch current {
        case .followed(let content): !index.generations.contains { $0.content == content }
        // The number is always new; so only the digest is compared.
        case .promoted(let content, _): !index.generations.contains { $0.content.digest == content.digest }
        case .asIndexed, .verified, .restored, .lost, .withheld, .hidden: false
        }
    }

    /// The generation whose row must be written; nil if the row is right, or if there is no generation.
    fileprivate var shown: StoredContent? {
        switch current {
        case .verified(let content), .followed(let content), .promoted(let content, _), .restored(let content): content
        case .asIndexed, .lost, .withheld, .hidden: nil
        }
    }

    fileprivate var repairs: [PipelineRecovery.Repair] {
        var repairs: [PipelineRecovery.Repair] = []
        switch current {
        case .asIndexed: break  // not a repair
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
