import FreshetModel

/// The pipelines: which file each owns, which generation is current, what holds the copy back, and the last attempts.
struct PipelineTable {
    let database: SQLiteDatabase

    // MARK: Rows

    func all() throws(SQLiteError) -> [IndexedPipeline] {
        try database.rows(Self.query, read: Self.pipeline)
    }

    func row(_ name: String) throws(SQLiteError) -> IndexedPipeline? {
        try database.row(Self.queryOfOne, .text(name), read: Self.pipeline)
    }

    /// The pipeline's row, which is made if it does not exist.
    func ensure(_ name: String) throws(SQLiteError) -> IndexedPipeline {
        if let known = try row(name) { return known }
        try database.run("INSERT INTO pipelines (name) VALUES (?)", .text(name))
        return IndexedPipeline(id: database.lastInsertedRow, name: name, file: nil, current: nil, lastNumber: 0)
    }

    /// The id of the pipeline's row, which is made if it does not exist.
    func ensureID(_ name: String) throws(SQLiteError) -> Int64 {
        let known = try database.row("SELECT id FROM pipelines WHERE name = ?", .text(name)) { $0.integer(0) }
        if let known { return known }
        return try ensure(name).id
    }

    /// Deletes the row of a pipeline with all rows of other tables that belong to it.
    func forget(_ name: String) throws(SQLiteError) {
        try database.run("DELETE FROM pipelines WHERE name = ?", .text(name))
    }

    private static let query = """
        SELECT id, name, file, current, last_number, origin_digest, pin_number, pin_digest, pinned_at, check_digest,
            is_set, former_set, withdrawn_at
        FROM pipelines
        """
    private static let queryOfOne = query + " WHERE name = ?"

    /// Reads a pipeline from the first columns: those of ``query``.
    static func pipeline(_ row: borrowing SQLiteRow) -> IndexedPipeline {
        IndexedPipeline(
            id: row.integer(0), name: row.text(1), file: row.optionalText(2), current: row.optionalNumber(3),
            lastNumber: row.integer(4).clamped(to: 0...IndexBounds.numbers.upperBound),
            originDigest: row.digest(5), pin: pin(row, at: 6),
            checkDigest: row.digest(9), isSet: row.flag(10),
            formerSets: formerSets(row.optionalText(11)),
            withdrawnAt: row.optionalTime(12))
    }

    /// Reads a pin from three columns: number, digest, time.
    static func pin(_ row: borrowing SQLiteRow, at column: Int32) -> IndexedPin? {
        guard let number = row.optionalNumber(column), let digest = row.digest(column + 1) else {
            return nil
        }
        return IndexedPin(
            content: StoredContent(number: number, digest: digest),
            since: row.time(column + 2))
    }

    // MARK: Files

    /// The file of each pipeline, and whether the pipeline keeps several files.
    func files() throws(SQLiteError) -> [String: (file: String?, isSet: Bool)] {
        var files: [String: (file: String?, isSet: Bool)] = [:]
        try database.walk("SELECT name, file, is_set FROM pipelines") { row in
            files[row.text(0)] = (row.optionalText(1), row.flag(2))
            return true
        }
        return files
    }

    /// The pipeline that owns a name below `current/`.
    func owner(of file: String) throws(SQLiteError) -> String? {
        try database.row(
            "SELECT name FROM pipelines WHERE file = ?1 OR (file = ?2 AND is_set)", .text(file),
            .text(file + CacheLayout.stampSuffix)
        ) { $0.text(0) }
    }

    /// The pipeline's row; nil if the pipeline has another file by now, or keeps one file instead of several, or the
    /// reverse.
    func row(assigned destination: CacheDestination) throws(SQLiteError) -> IndexedPipeline? {
        let row = try row(destination.pipeline)
        return row?.file == destination.file && row?.isSet == destination.isSet ? row : nil
    }

    func setFile(_ file: String?, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET file = ? WHERE id = ?", SQLiteValue(file), .integer(pipeline))
    }

    /// Records whether the pipeline keeps several files.
    func setKind(isSet: Bool, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET is_set = ? WHERE id = ?", .integer(isSet ? 1 : 0), .integer(pipeline))
    }

    /// Adds the former link of a pipeline to the former links from before: the files there belong to the last commit,
    /// however often the pipeline was renamed since. Beyond ``CacheLimits/formerLinks`` no more links are added.
    func addFormerSet(_ link: String, of row: IndexedPipeline) throws(SQLiteError) {
        guard !row.formerSets.contains(link), row.formerSets.count < CacheLimits.formerLinks else { return }
        try setFormerSets(row.formerSets + [link], of: row.id)
    }

    /// Deletes these former links, but not links that were added since.
    func forgetFormerSets(_ links: [String], of name: String) throws(SQLiteError) {
        guard let row = try row(name) else { return }
        try setFormerSets(row.formerSets.filter { !links.contains($0) }, of: row.id)
    }

    private func setFormerSets(_ links: [String], of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET former_set = ? WHERE id = ?",
            SQLiteValue(links.isEmpty ? nil : links.joined(separator: Self.formerSeparator)), .integer(pipeline))
    }

    /// File names cannot contain this character.
    private static let formerSeparator = "/"

    /// Reads the column `former_set`.
    static func formerSets(_ text: String?) -> [String] {
        text.map { $0.split(separator: formerSeparator).map(String.init) } ?? []
    }

    // MARK: The copy

    /// Sets the number of the current generation; nil: there is none. ``CacheIndex/setCurrent(_:of:)`` also updates what
    /// depends on it.
    func setCurrent(_ number: Int64?, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET current = ? WHERE id = ?", SQLiteValue(number), .integer(pipeline))
    }

    /// The same for a generation that is new: readers find it, and no later one gets a lower number.
    func publish(_ number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            UPDATE pipelines SET current = ?1, last_number = max(last_number, ?1), withdrawn_at = NULL WHERE id = ?2
            """, .integer(number), .integer(pipeline))
    }

    /// Records that a generation has this number: no later one gets a lower number.
    func useNumber(_ number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET last_number = max(last_number, ?) WHERE id = ?", .integer(number), .integer(pipeline))
    }

    /// Records that the current generation is withdrawn or published again.
    ///
    /// - Parameter time: when it was withdrawn; nil: readers find the current generation.
    func setWithdrawn(_ time: WallTime?, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET withdrawn_at = ? WHERE id = ?", .time(time), .integer(pipeline))
    }

    func setPin(_ pin: IndexedPin?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET pin_number = ?, pin_digest = ?, pinned_at = ? WHERE id = ?",
            SQLiteValue(pin?.content.number), pin.map { .blob($0.content.digest.bytes) } ?? .null,
            .time(pin?.since), .integer(pipeline))
    }

    /// Records the digest of the origin's content if it differs from the copy; nil: it does not differ, or is not
    /// known.
    func setOriginDigest(_ digest: ContentDigest?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET origin_digest = ? WHERE id = ?", digest.map { .blob($0.bytes) } ?? .null,
            .integer(pipeline))
    }

    /// Forgets the digests of the origin's content, because the copy has content that the index does not know.
    func forgetOrigin(of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET origin_digest = NULL, check_digest = NULL WHERE id = ?", .integer(pipeline))
    }

    // MARK: Attempts

    /// Records that the origin confirmed or delivered content of this digest.
    ///
    /// - Parameter expires: until when the content is fresh, as the origin states; nil: the origin states nothing.
    func recordSuccess(
        of pipeline: Int64, _ digest: ContentDigest, at now: WallTime, expires: WallTime?
    ) throws(SQLiteError) {
        try database.run(
            """
            UPDATE pipelines SET
                last_attempt = ?1, last_success = ?1, retry_after = NULL, expires = ?3, check_digest = ?4
            WHERE id = ?2
            """, .time(now), .integer(pipeline), .time(expires), .blob(digest.bytes))
    }

    func recordFailure(of pipeline: Int64, at now: WallTime, retryAfter: WallTime?) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET last_attempt = ?, retry_after = coalesce(?, retry_after) WHERE id = ?",
            .time(now), .time(retryAfter), .integer(pipeline))
    }

    /// Forgets the last success, because there is no copy, and what the origin said with it.
    func forgetSuccess(of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET last_success = NULL, expires = NULL, origin_digest = NULL WHERE id = ?",
            .integer(pipeline))
    }

    /// Deletes the `Retry-After` of a pipeline.
    func forgetRetryAfter(of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET retry_after = NULL WHERE id = ?", .integer(pipeline))
    }

    func refreshState(of name: String) throws(SQLiteError) -> RefreshState? {
        try database.row(
            "SELECT last_attempt, last_success, retry_after, expires FROM pipelines WHERE name = ?", .text(name)
        ) {
            RefreshState(
                lastAttempt: $0.optionalTime(0),
                lastSuccess: $0.optionalTime(1),
                retryAfter: $0.optionalTime(2),
                expires: $0.optionalTime(3))
        }
    }
}
