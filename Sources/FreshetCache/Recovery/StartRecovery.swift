import Synchronization

/// Makes index and files agree at the start of the daemon.
struct StartRecovery: Sendable {
    let context: CacheContext
    let recovery: CacheRecovery
    let sets: FileSetStore
    let space: CacheSpace
    let leftovers: LeftoverFiles

    /// - Parameter beforeComparison: other work that only reads, before helpers are needed.
    /// - Returns: the findings; and the pipelines whose published file is the one that was committed, if that was found
    ///   with few instructions.
    func recover(
        _ state: RecoveryReport.Index, _ repairs: [IndexRepair], verifiesAll: Bool, with helpers: StartHelpers = .none,
        beforeComparison: () -> Void = {}
    ) throws(CacheError) -> (RecoveryReport, ComparedCopies) {
        var report = RecoveryReport(index: state, indexRepairs: repairs)
        let (readers, directories) = try context.onFiles { (files) throws(SystemCallError) in
            try context.makeDirectories(for: nil, files)
            return (try files.list(context.layout.current), try files.list(context.layout.generations))
        }
        for entry in readers where CacheLayout.isTemporary(entry.name) {
            try leftovers.remove(leftover: entry.name, in: context.layout.current, of: nil)
            report.temporaries += 1
        }
        sets.removeUnfinished()
        let (further, rows) = try StartRepair(context: context, recovery: recovery, space: space).perform(
            after: repairs)
        report.indexRepairs += further
        let rejected = try rejections(of: rows)
        let epoch = context.index.epoch
        let (generations, changes) = try context.withIndex { (index) throws(SQLiteError) in
            (try index.generations.all(), index.database.totalChanges)
        }
        beforeComparison()
        let comparison = StartComparison(rows, generations, context.layout, context.fileSystem)
        if !verifiesAll { helpers.perform { comparison.continueWork() } }
        let agreeing = comparison.agreeing
        let compared = ComparedCopies(pipelines: Set(agreeing.map { rows[$0].id }), changes: changes, epoch: epoch)
        var directoryNames = Set(directories.map(\.name))
        // Rows and files of most starts agree.
        for index in agreeing { directoryNames.remove(rows[index].name) }
        guard agreeing.count < rows.count || !directoryNames.isEmpty else { return (report, compared) }
        let start = StartSnapshot(
            readers: readers, directories: directoryNames.filter { CacheName.error(in: $0) == nil }, rows: rows,
            generations: generations, rejected: rejected)
        let others = rows.lazy.filter { !compared.pipelines.contains($0.id) }.map(\.name)
        let names = start.directories.union(others).filter { !start.hasNoContent($0) }
        for name in names.sorted() {
            do throws(CacheError) {
                if let recovery = try recovery.reconcile(name, start: start, verifiesAll: verifiesAll) {
                    report.pipelines.append(recovery)
                }
            } catch {
                // An error of one pipeline does not prevent others from starting.
                context.entry(name).withLock { $0.isSuspect = true }
                report.pipelines.append(PipelineRecovery(pipeline: name, repairs: [.failed(error)]))
            }
        }
        return (report, compared)
    }

    /// The rejected content of all pipelines. Rows without a file are deleted.
    private func rejections(
        of rows: [IndexedPipeline]
    ) throws(CacheError) -> [(pipeline: Int64, rejection: IndexedRejection)] {
        var rejections = try context.withIndex { (index) throws(SQLiteError) in try index.rejected.all() }
        guard !rejections.isEmpty else { return [] }
        let names = Dictionary(rows.map { ($0.id, $0.name) }) { first, _ in first }
        let gone = try context.onFiles { (files) throws(SystemCallError) -> Set<Int64> in
            var gone: Set<Int64> = []
            for (id, rejection) in rejections {
                let path = names[id].map { context.layout.rejected(rejection.digest, of: $0) }
                if try path.flatMap({ (path) throws(SystemCallError) in try files.status(path) }) == nil {
                    gone.insert(id)
                }
            }
            return gone
        }
        if gone.isEmpty { return rejections }
        try context.transaction { (index) throws(SQLiteError) in
            for id in gone { try index.rejected.set(nil, of: id) }
        }
        rejections.removeAll { gone.contains($0.pipeline) }
        return rejections
    }
}
