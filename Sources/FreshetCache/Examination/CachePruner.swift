package import FreshetModel
import Synchronization

/// Removes content that does not belong to a configured pipeline.
package struct CachePruner: Sendable {
    let context: CacheContext
    let sets: FileSetStore
    let checker: CacheChecker

    /// The content, in the index or on the disk, of pipelines that are not configured.
    package func holdings(besides configured: Set<String>) throws(CacheError) -> [CacheUsage] {
        var holdings: [CacheUsage] = []
        for name in try checker.examinable() where !configured.contains(name) {
            if let holding = try holding(of: name) { holdings.append(holding) }
        }
        return holdings
    }

    /// Removes all content of a pipeline: its copy, its generations, and its rows in the index.
    ///
    /// A crash leaves a consistent state: before the index forgets the pipeline, the pipeline has all its content, and
    /// a start restores its copy; after that, its content belongs to no pipeline and is found again.
    ///
    /// - Returns: the removed content; nil if there was none.
    package func prune(_ pipeline: String) throws(CacheError) -> CacheUsage? {
        try CacheName.check(pipeline)
        return try context.entry(pipeline).withLock { (state) throws(CacheError) -> CacheUsage? in
            guard let holding = try holding(of: pipeline) else { return nil }
            // Until the removal is complete, or for the next pipeline of this name.
            state.isSuspect = true
            let row = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(pipeline) }
            if let row { try sets.removeLink(of: row) }
            if let row, !row.formerSets.isEmpty { try sets.removeFormer(of: row) }
            if let file = holding.file { try removeCopy(context.layout.reader(file), of: pipeline) }
            try context.contentTransaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.pipelines.forget(pipeline)
            }
            // The directories are removed last, because a pipeline without a row is found by them.
            try sets.removeAll(of: pipeline)
            try removeContent(of: pipeline)
            state.isSuspect = false
            state.refuted = nil
            return holding
        }
    }

    // MARK: Inside

    private func holding(of pipeline: String) throws(CacheError) -> CacheUsage? {
        let known = try context.withIndex { (index) throws(SQLiteError) -> CacheUsage? in
            guard let row = try index.pipelines.row(pipeline) else { return nil }
            let generations = try index.generations.all(of: row.id)
            let rejected = try index.rejected.row(of: row.id)?.size ?? 0
            return CacheUsage(
                pipeline: pipeline, file: row.file, generations: generations.count,
                bytes: generations.reduce(rejected) { $0.addingClamped($1.identity.size) },
                committedAt: generations.map(\.committedAt.nanoseconds).max().map { WallTime(nanoseconds: $0) })
        }
        if let known { return known }
        guard try context.isDirectory(context.layout.generations(of: pipeline)) else { return nil }
        return CacheUsage(pipeline: pipeline, file: nil, generations: 0, bytes: 0, committedAt: nil)
    }

    /// Removes the published file. A file that does not belong to the pipeline is moved aside.
    private func removeCopy(_ path: String, of pipeline: String) throws(CacheError) {
        let own = try context.withIndex { (index) throws(SQLiteError) in
            try index.publication(of: pipeline)?.generation.identity
        }
        try context.onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(path) else { return }
            let inodes = try files.list(context.layout.generations(of: pipeline)).map(\.inode)
            guard status.isRegularFile, inodes.contains(status.identity.inode) || status.identity == own else {
                return try context.moveToStrays(path, files)
            }
            try files.unlink(path)
            try files.synchronizeDirectory(context.layout.current)
        }
    }

    private func removeContent(of pipeline: String) throws(CacheError) {
        let directory = context.layout.generations(of: pipeline)
        // A symbolic link or another object in its place does not belong to the cache.
        guard try context.isDirectory(directory) else { return }
        try context.onFiles { (files) throws(SystemCallError) in
            for entry in try files.list(directory) where !context.names.isInUse(entry.name) {
                let path = directory + "/" + entry.name
                let isOwn =
                    StoredContent(name: entry.name) != nil || CacheLayout.rejectedDigest(entry.name) != nil
                    || CacheLayout.isTemporary(entry.name)
                if isOwn, try files.status(path)?.isRegularFile == true {
                    try files.unlink(path)
                } else {
                    try context.moveToStrays(path, files)
                }
            }
            try files.removeDirectory(directory)
        }
    }
}

/// The content of a pipeline in the cache, shown before it is removed.
package struct CacheUsage: Hashable, Sendable {
    package var pipeline: String
    /// The pipeline's file below `current/`; nil if it has none.
    package var file: String?
    /// The number of kept generations.
    package var generations: Int
    /// The bytes of the generations and of the rejected content.
    package var bytes: Int64
    /// When the newest generation was committed; nil if there is none.
    package var committedAt: WallTime?
}
