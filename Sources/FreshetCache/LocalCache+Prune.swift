import Synchronization

/// What the cache has of a pipeline, to be shown before it is removed.
package struct CacheUsage: Hashable, Sendable {
    package var pipeline: String
    /// Its file below `current/`; nil: it has none.
    package var file: String?
    /// Generations that are kept.
    package var generations: Int
    /// Of these, and of what a check refused.
    package var bytes: Int64
    /// When the newest of them was committed; nil: there is none.
    package var committedAt: WallTime?
}

/// Removing what no pipeline owns.
extension LocalCache {
    /// What the index or the disk has of pipelines that are not among these, by their names.
    package func holdings(besides configured: Set<String>) throws(CacheError) -> [CacheUsage] {
        var holdings: [CacheUsage] = []
        for name in try examinable() where !configured.contains(name) {
            if let holding = try holding(of: name) { holdings.append(holding) }
        }
        return holdings
    }

    /// Removes all that there is of a pipeline: its copy, its generations, and what the index remembers.
    ///
    /// What a crash leaves is whole: before the index forgets the pipeline, it has what it had, and a start puts its copy
    /// back; afterwards its content belongs to nobody and is found again.
    ///
    /// - Returns: what was removed; nil: there was nothing.
    package func prune(_ pipeline: String) throws(CacheError) -> CacheUsage? {
        try CacheName.check(pipeline)
        return try entry(pipeline).state.withLock { (state) throws(CacheError) -> CacheUsage? in
            guard let holding = try holding(of: pipeline) else { return nil }
            // Until it is done, or for whoever has the name after that.
            state.isSuspect = true
            let row = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
            if let row { try removeLink(of: row) }
            if let row, !row.formerSets.isEmpty { try removeFormerSets(of: row) }
            if let file = holding.file { try removeCopy(layout.reader(file), of: pipeline) }
            try contentTransaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.forget(pipeline: pipeline)
            }
            // Last what a pipeline that nobody knows is found by.
            try removeSets(of: pipeline)
            try removeContent(of: pipeline)
            state.isSuspect = false
            state.refuted = nil
            return holding
        }
    }

    // MARK: Inside

    private func holding(of pipeline: String) throws(CacheError) -> CacheUsage? {
        let known = try withIndex { (index) throws(SQLiteError) -> CacheUsage? in
            guard let row = try index.pipeline(pipeline) else { return nil }
            let generations = try index.generations(of: row.id)
            let refused = try index.refused(of: row.id)?.size ?? 0
            return CacheUsage(
                pipeline: pipeline, file: row.file, generations: generations.count,
                bytes: generations.reduce(refused) { $0.addingClamped($1.identity.size) },
                committedAt: generations.map(\.committedAt.nanoseconds).max().map { WallTime(nanoseconds: $0) })
        }
        if let known { return known }
        guard try isDirectory(layout.generations(of: pipeline)) else { return nil }
        return CacheUsage(pipeline: pipeline, file: nil, generations: 0, bytes: 0, committedAt: nil)
    }

    /// Takes away what readers find. What is not the pipeline's own is moved aside.
    private func removeCopy(_ path: String, of pipeline: String) throws(CacheError) {
        let own = try withIndex { (index) throws(SQLiteError) in try index.offer(of: pipeline)?.generation.identity }
        try onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(path) else { return }
            let inodes = try files.list(self.layout.generations(of: pipeline)).map(\.inode)
            guard status.isRegularFile, inodes.contains(status.identity.inode) || status.identity == own else {
                return try self.takeAway(path, files)
            }
            try files.unlink(path)
            try files.synchronizeDirectory(self.layout.current)
        }
    }

    private func removeContent(of pipeline: String) throws(CacheError) {
        let directory = layout.generations(of: pipeline)
        // A link that leads elsewhere, or something else in its place, is not ours.
        guard try isDirectory(directory) else { return }
        try onFiles { (files) throws(SystemCallError) in
            for entry in try files.list(directory) where !self.isLiving(entry.name) {
                let path = directory + "/" + entry.name
                let isOwn =
                    StoredContent(name: entry.name) != nil || CacheLayout.refusedDigest(entry.name) != nil
                    || CacheLayout.isTemporary(entry.name)
                if isOwn, try files.status(path)?.isRegularFile == true {
                    try files.unlink(path)
                } else {
                    try self.takeAway(path, files)
                }
            }
            try files.removeDirectory(directory)
        }
    }
}

extension CacheIndex {
    /// And all that belongs to it.
    fileprivate mutating func forget(pipeline: String) throws(SQLiteError) {
        try database.run("DELETE FROM pipelines WHERE name = ?", .text(pipeline))
    }
}
