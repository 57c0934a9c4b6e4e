/// Which pipelines keep several files.
extension CacheIndex {
    /// Gives a pipeline its file, or the stamp of its files. What was kept of the other kind can never be the copy again, and
    /// is forgotten.
    ///
    /// - Parameter row: as it was before.
    /// - Returns: the content that was forgotten.
    mutating func assign(_ file: String, isSet: Bool, to row: IndexedPipeline) throws(SQLiteError) -> [StoredContent] {
        try setFile(file, of: row.id)
        if let former = row.link, row.file != file || !isSet {
            try database.run("UPDATE pipelines SET former_set = ? WHERE id = ?", .text(former), .integer(row.id))
        }
        guard row.isSet != isSet else { return [] }
        try database.run("UPDATE pipelines SET is_set = ? WHERE id = ?", .integer(isSet ? 1 : 0), .integer(row.id))
        let contents = try generations(of: row.id).map(\.content)
        for content in contents { try forget(generation: content.number, of: row.id) }
        try setCurrent(nil, of: row.id)
        try setRefused(nil, of: row.id)
        // Else nothing could ever take the place of a generation that is gone.
        try setPin(nil, of: row.id)
        return contents
    }

    mutating func forgetFormerSet(of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET former_set = NULL WHERE id = ?", .integer(pipeline))
    }

    /// The names below `current/` that a file takes.
    static func names(of file: String, isSet: Bool) -> [String] {
        [file] + (isSet ? CacheLayout.linkName(ofStamp: file).map { [$0] } ?? [] : [])
    }
}
