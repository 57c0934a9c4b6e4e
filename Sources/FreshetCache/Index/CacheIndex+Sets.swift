/// Which pipelines keep several files.
extension CacheIndex {
    /// Gives a pipeline its file, or the stamp of its files. What was kept of the other kind can never be the copy again, and
    /// is forgotten.
    ///
    /// - Parameter row: as it was before.
    /// - Returns: the content that was forgotten; nil: none.
    mutating func assign(
        _ file: String, isSet: Bool, to row: IndexedPipeline
    ) throws(SQLiteError) -> OrphanedContent? {
        try setFile(file, of: row.id)
        if let former = row.link, row.file != file || !isSet { try addFormerSet(former, of: row) }
        guard row.isSet != isSet else { return nil }
        try database.run("UPDATE pipelines SET is_set = ? WHERE id = ?", .integer(isSet ? 1 : 0), .integer(row.id))
        let forgotten = OrphanedContent(
            pipeline: row.name, generations: try generations(of: row.id).map(\.content),
            refused: try refused(of: row.id)?.digest)
        for content in forgotten.generations { try forget(generation: content.number, of: row.id) }
        try setCurrent(nil, of: row.id)
        try setRefused(nil, of: row.id)
        // Else nothing could ever take the place of a generation that is gone.
        try setPin(nil, of: row.id)
        return forgotten
    }

    /// Remembers the name of a link that a pipeline has no more, beside those from before: what stands there belongs to what
    /// was committed last, however many names it was given since. Beyond ``CacheLimits/formerLinks`` the oldest stay.
    mutating func addFormerSet(_ link: String, of row: IndexedPipeline) throws(SQLiteError) {
        guard !row.formerSets.contains(link), row.formerSets.count < CacheLimits.formerLinks else { return }
        try database.run(
            "UPDATE pipelines SET former_set = ? WHERE id = ?",
            .text((row.formerSets + [link]).joined(separator: Self.formerSeparator)), .integer(row.id))
    }

    /// No name of a file has it.
    private static let formerSeparator = "/"

    static func formerSets(_ text: String?) -> [String] {
        text.map { $0.split(separator: formerSeparator).map(String.init) } ?? []
    }

    /// Forgets these, and none that was added since.
    mutating func forgetFormerSets(_ links: [String], of name: String) throws(SQLiteError) {
        guard let row = try pipeline(name) else { return }
        let left = row.formerSets.filter { !links.contains($0) }
        try database.run(
            "UPDATE pipelines SET former_set = ? WHERE id = ?",
            SQLiteValue(left.isEmpty ? nil : left.joined(separator: Self.formerSeparator)), .integer(row.id))
    }

    /// The names below `current/` that a file takes.
    static func names(of file: String, isSet: Bool) -> [String] {
        [file] + (isSet ? CacheLayout.linkName(ofStamp: file).map { [$0] } ?? [] : [])
    }
}

/// Content of a pipeline that the index has forgotten, and whose files are to go.
struct OrphanedContent: Hashable, Sendable {
    var pipeline: String
    var generations: [StoredContent]
    /// What a check had refused.
    var refused: ContentDigest?
}
