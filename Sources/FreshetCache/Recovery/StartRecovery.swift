import Synchronization

/// Makes index and files agree at the start of the daemon.
struct StartRecovery: Sendable {
    let context: CacheContext
    let recovery: CacheRecovery
    let sets: FileSetStore
    let space: CacheSpace
    let leftovers: LeftoverFiles

    func recover(
        _ state: RecoveryReport.Index, _ repairs: [IndexRepair], verifiesAll: Bool
    ) throws(CacheError) -> RecoveryReport {
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
        let start = StartSnapshot(
            readers: readers, directories: Set(directories.map(\.name).filter { CacheName.error(in: $0) == nil }),
            rows: rows,
            generations: try context.withIndex { (index) throws(SQLiteError) in try index.generations.all() },
            rejected: try rejections(of: rows))
        let names = start.directories.union(rows.map(\.name)).filter { !start.hasNoContent($0) }
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
        return report
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
