/// Which pipelines show readers nothing since their copy is too old.
extension CacheIndex {
    /// - Parameter time: since when; nil: readers find the current generation.
    mutating func setWithdrawn(_ time: WallTime?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET withdrawn_at = ? WHERE id = ?", .time(time), .integer(pipeline))
    }
}
