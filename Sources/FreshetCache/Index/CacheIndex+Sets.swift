import FreshetModel

/// Pipelines that keep several files.
extension CacheIndex {
    /// Assigns a file to a pipeline, or the stamp of its files. If the pipeline kept one file and now keeps several, or
    /// the reverse, its old content can never be the copy again and is forgotten.
    ///
    /// - Parameter row: the row before the change.
    /// - Returns: the content that was forgotten, if any.
    mutating func assign(
        _ file: String, isSet: Bool, to row: IndexedPipeline
    ) throws(SQLiteError) -> OrphanedContent? {
        try setFile(file, of: row.id)
        if row.file != file { try markFormerName(of: row.id) }
        if let former = row.link, row.file != file || !isSet { try addFormerSet(former, of: row) }
        guard row.isSet != isSet else { return nil }
        try database.run("UPDATE pipelines SET is_set = ? WHERE id = ?", .integer(isSet ? 1 : 0), .integer(row.id))
        let forgotten = OrphanedContent(
            pipeline: row.name, generations: try generations(of: row.id).map(\.content),
            rejected: try rejected(of: row.id)?.digest)
        for content in forgotten.generations { try forget(generation: content.number, of: row.id) }
        try setCurrent(nil, of: row.id)
        try setRejected(nil, of: row.id)
        // Otherwise the pin would prevent any content from taking the place of the forgotten generation.
        try setPin(nil, of: row.id)
        return forgotten
    }

    /// Adds the former link of a pipeline to the former links from before: the files there belong to the last commit,
    /// however often the pipeline was renamed since. Beyond ``CacheLimits/formerLinks`` no more links are added.
    mutating func addFormerSet(_ link: String, of row: IndexedPipeline) throws(SQLiteError) {
        guard !row.formerSets.contains(link), row.formerSets.count < CacheLimits.formerLinks else { return }
        try database.run(
            "UPDATE pipelines SET former_set = ? WHERE id = ?",
            .text((row.formerSets + [link]).joined(separator: Self.formerSeparator)), .integer(row.id))
    }

    /// File names cannot contain this character.
    private static let formerSeparator = "/"

    static func formerSets(_ text: String?) -> [String] {
        text.map { $0.split(separator: formerSeparator).map(String.init) } ?? []
    }

    /// Deletes these former links, but not links that were added since.
    mutating func forgetFormerSets(_ links: [String], of name: String) throws(SQLiteError) {
        guard let row = try pipeline(name) else { return }
        let left = row.formerSets.filter { !links.contains($0) }
        try database.run(
            "UPDATE pipelines SET former_set = ? WHERE id = ?",
            SQLiteValue(left.isEmpty ? nil : left.joined(separator: Self.formerSeparator)), .integer(row.id))
    }

    /// The names below `current/` that a file uses.
    static func names(of file: String, isSet: Bool) -> [String] {
        [file] + (isSet ? CacheLayout.linkName(ofStamp: file).map { [$0] } ?? [] : [])
    }
}

/// Content of a pipeline that the index has forgotten and whose files are to be removed.
struct OrphanedContent: Hashable, Sendable {
    var pipeline: String
    var generations: [StoredContent]
    /// The digest of the rejected content.
    var rejected: ContentDigest?
}
