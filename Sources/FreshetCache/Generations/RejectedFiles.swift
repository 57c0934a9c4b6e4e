import FreshetModel
import Synchronization

/// Removes rejected content from the index and the disk.
struct RejectedFiles: Sendable {
    let context: CacheContext

    /// Removes the file of rejected content. If this fails, the next start removes the file.
    func remove(_ digest: ContentDigest, of pipeline: String) {
        try? context.fileSystem.unlink(context.layout.rejected(digest, of: pipeline))
        try? context.measure()
    }

    /// Removes rejected content whose time is over.
    func dropOld(of pipeline: String, at now: WallTime) throws(CacheError) {
        try context.entry(pipeline).holding { _ throws(CacheError) in
            try forget(of: pipeline) { !$0.isKept(at: now) }
        }
    }

    /// Forgets rejected content that has passed the checks now. The caller holds the pipeline's lock.
    func forget(of pipeline: String, ofContent digest: ContentDigest) throws(CacheError) {
        try forget(of: pipeline) { $0.digest == digest }
    }

    private func forget(
        of pipeline: String, if isOver: (IndexedRejection) -> Bool
    ) throws(CacheError) {
        let over = try context.withIndex { (index) throws(SQLiteError) -> ContentDigest? in
            guard let row = try index.pipelines.row(pipeline), let known = try index.rejected.row(of: row.id),
                isOver(known)
            else { return nil }
            try index.rejected.set(nil, of: row.id)
            return known.digest
        }
        if let over { remove(over, of: pipeline) }
    }
}
