package import FreshetModel

/// Stores parts of snapshots, so that the next run can make a conditional request for each. Readers do not use them: if
/// parts are lost, they are fetched again.
extension LocalCache {
    /// A part of a pipeline's last snapshot; nil if there is no part of this name.
    package func part(_ name: String, of pipeline: String) throws(CacheError) -> StoredPart? {
        try withIndex { (index) throws(SQLiteError) in try index.part(name, of: pipeline) }
    }

    /// Stores new parts, and deletes all other parts for which `isKept` is false.
    package func keepParts(
        of pipeline: String, new: [String: StoredPart], and isKept: (_ name: String) -> Bool
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            let row = try index.ensurePipeline(pipeline).id
            for name in try index.partNames(of: row) where new[name] == nil && !isKept(name) {
                try index.forgetPart(name, of: row)
            }
            for (name, part) in new { try index.put(part, as: name, of: row) }
        }
    }
}
