import FreshetModel

/// Pipelines whose copy is withdrawn because it is too old.
extension CacheIndex {
    /// Records that the current generation is withdrawn or published again.
    ///
    /// - Parameter time: when it was withdrawn; nil: readers find the current generation.
    mutating func setWithdrawn(_ time: WallTime?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET withdrawn_at = ? WHERE id = ?", .time(time), .integer(pipeline))
    }
}
