import FreshetModel

/// A repair of values in the index that were out of range; `description` is a part of a sentence.
package struct IndexRepair: Hashable, Sendable, CustomStringConvertible {
    /// The table; with the column if only that was reset.
    package var place: String
    /// The number of repaired rows.
    package var rows: Int64
    /// Whether the rows were deleted; otherwise the value was reset or brought into its range.
    package var isDropped: Bool

    init(_ place: String, rows: Int64 = 1, isDropped: Bool) {
        (self.place, self.rows, self.isDropped) = (place, rows, isDropped)
    }

    package var description: String {
        isDropped
            ? "\(rows) \(rows == 1 ? "row" : "rows") of \(place) dropped"
            : "\(place) reset" + (rows == 1 ? "" : " in \(rows) rows")
    }
}

/// Checks each value of the index, and drops or resets values that Freshet cannot have written (``IndexBounds``).
///
/// An optional value becomes NULL; a value with a harmless default gets the default; a row without a usable value is
/// deleted. Freshet fetches, counts or runs again whatever is lost by that, and finds content again by its files.
enum IndexValidation {
    /// The kind of values in a column.
    enum Kind: Hashable, Sendable {
        /// The rowid, or bits.
        case anything
        /// The rowid of a pipeline.
        case owner
        case number, time, size, count, flag, digest
        /// The number of the last generation; 0: there was none.
        case lastNumber
        case blob
        /// A text of at most this many bytes.
        case text(Int)
        /// A text that is sent in the header of a request.
        case header
        /// One of a few texts.
        case oneOf([String])

        /// An SQL expression that is true if the value is not of this kind. The column is not NULL.
        func isViolated(by column: String) -> String {
            // Comparisons of operands instead of typeof(): a function takes several times as long, and a start checks
            // each value. `|` makes an integer of any value; integers and texts are less than all blobs. `+` takes the
            // type of the column away, which would make a number of the text '2' before the comparison.
            let isNoInteger = "+\(column) <> (\(column) | 0)"
            let isNoBlob = "\(column) < x''"
            func outside(_ range: ClosedRange<Int64>) -> String {
                "(\(isNoInteger) OR \(column) NOT BETWEEN \(range.lowerBound) AND \(range.upperBound))"
            }
            switch self {
            case .anything: return isNoInteger
            case .owner: return "\(column) NOT IN (SELECT id FROM pipelines)"
            case .number: return outside(IndexBounds.numbers)
            case .lastNumber: return outside(0...IndexBounds.numbers.upperBound)
            case .time: return outside(IndexBounds.times)
            case .size: return outside(IndexBounds.sizes)
            case .count: return outside(IndexBounds.counts)
            case .flag: return outside(IndexBounds.flags)
            case .digest: return "(\(isNoBlob) OR length(\(column)) <> \(ContentDigest.byteCount))"
            case .blob: return isNoBlob
            case .text(let limit):
                return "(typeof(\(column)) <> 'text' OR length(CAST(\(column) AS BLOB)) > \(limit))"
            case .header:
                return
                    "(\(Self.text(CacheLimits.validatorBytes).isViolated(by: column)) OR \(column) GLOB '*[^ -~]*')"
            case .oneOf(let texts):
                return "\(column) NOT IN (\(texts.map { "'\($0)'" }.joined(separator: ", ")))"
            }
        }
    }

    /// What happens to a value that is not of its kind.
    enum Remedy: Hashable, Sendable {
        /// The row is deleted.
        case drop
        /// The value is set to an SQL expression, which may be NULL.
        case set(String)
    }

    struct Rule: Hashable, Sendable {
        var column: String
        var kind: Kind
        var remedy: Remedy
        /// Whether the column may be NULL.
        var isOptional = false

        init(_ column: String, _ kind: Kind, _ remedy: Remedy = .drop, isOptional: Bool = false) {
            (self.column, self.kind, self.remedy, self.isOptional) = (column, kind, remedy, isOptional)
        }

        /// A column that may be NULL.
        static func optional(_ column: String, _ kind: Kind) -> Rule {
            Rule(column, kind, .set("NULL"), isOptional: true)
        }

        var isViolated: String {
            isOptional
                ? "(\(column) IS NOT NULL AND \(kind.isViolated(by: column)))"
                : "(\(column) IS NULL OR \(kind.isViolated(by: column)))"
        }
    }

    /// Checks all tables, in one transaction.
    ///
    /// - Parameter scans: whether a ``scan(_:)`` may show that the statements are not needed; for tests.
    static func perform(on database: SQLiteDatabase, scans: Bool = true) throws(SQLiteError) -> [IndexRepair] {
        try database.begin()
        do throws(SQLiteError) {
            var repairs: [IndexRepair] = []
            let scan = scans ? try Self.scan(database) : .skipped
            if !scan.isSound { for (table, rules) in tables { repairs += try audit(table, rules, in: database) } }
            if !scan.isSound { repairs += try dropForeignNames(in: database) }
            if repairs.contains(where: { $0.place == "generations.content_expires" }) {
                // The expiry time is only read from a complete response.
                try database.execute("DELETE FROM validators")
            }
            for rule in IndexConsistency.rules {
                if rule.place == IndexConsistency.lastNumber, scan.isSound, scan.hasLastNumbers { continue }
                // To prepare the statement takes longer than to look whether there is a row.
                guard try hasRows(rule.table, in: database) else { continue }
                try database.run(rule.statement)
                let rows = database.changedRows
                if rows > 0 { repairs.append(IndexRepair(rule.place, rows: rows, isDropped: false)) }
            }
            if !repairs.isEmpty { try setUnfinished(in: database) }
            try database.commit()
            return repairs
        } catch {
            database.rollBack()
            throw error
        }
    }

    /// The key of the mark that ``StartRepair`` has to follow. It is a state of the first pipeline, because an older
    /// version would refuse an index with another table.
    private static let unfinishedKey = "repairs-unfinished"

    /// Marks that values were repaired and that ``StartRepair`` has not compared the others with the files. Call it in the
    /// transaction of the repairs: the process may be killed before the comparison. Without a pipeline there is nothing
    /// to compare.
    static func setUnfinished(in database: SQLiteDatabase) throws(SQLiteError) {
        try database.run(
            "INSERT OR REPLACE INTO state SELECT id, ?, x'' FROM pipelines ORDER BY id LIMIT 1", .text(unfinishedKey))
    }

    /// Whether an earlier start was killed before ``StartRepair`` had finished.
    static func isUnfinished(in database: SQLiteDatabase) throws(SQLiteError) -> Bool {
        try database.row(
            "SELECT 1 FROM state WHERE pipeline = (SELECT min(id) FROM pipelines) AND key = ?", .text(unfinishedKey)
        ) { _ in true } ?? false
    }

    /// Removes the mark.
    static func setFinished(in database: SQLiteDatabase) throws(SQLiteError) {
        try database.run("DELETE FROM state WHERE key = ?", .text(unfinishedKey))
    }

    private static func hasRows(_ table: String, in database: SQLiteDatabase) throws(SQLiteError) -> Bool {
        try database.row("SELECT 1 FROM \(table) LIMIT 1", read: { _ in true }) ?? false
    }

    private static func audit(
        _ table: String, _ rules: [Rule], in database: SQLiteDatabase
    ) throws(SQLiteError) -> [IndexRepair] {
        // A table without errors is read once, and each row only until its first error: that takes less than half of
        // the time of counting the errors of each rule.
        let isAny = rules.map(\.isViolated).joined(separator: " OR ")
        guard try database.row("SELECT 1 FROM \(table) WHERE \(isAny) LIMIT 1", read: { _ in true }) ?? false else {
            return []
        }
        let sums = rules.map { "total(\($0.isViolated))" }.joined(separator: ", ")
        let violations = try database.row("SELECT \(sums) FROM \(table)") { row in
            rules.indices.map { row.integer(Int32($0)) }
        }
        guard let violations else { return [] }
        var repairs: [IndexRepair] = []
        for (rule, count) in zip(rules, violations) where count > 0 {
            switch rule.remedy {
            case .drop:
                try database.run("DELETE FROM \(table) WHERE \(rule.isViolated)")
                let rows = database.changedRows
                if rows > 0 { repairs.append(IndexRepair(table, rows: rows, isDropped: true)) }
            case .set(let value):
                try database.run("UPDATE \(table) SET \(rule.column) = \(value) WHERE \(rule.isViolated)")
                let rows = database.changedRows
                if rows > 0 { repairs.append(IndexRepair("\(table).\(rule.column)", rows: rows, isDropped: false)) }
            }
        }
        return repairs
    }

    static func areValid(formerSets links: [String]) -> Bool {
        links.count <= CacheLimits.formerLinks && links.allSatisfy { CacheName.error(in: $0) == nil }
    }

    /// Drops invalid names, because names become parts of paths.
    private static func dropForeignNames(in database: SQLiteDatabase) throws(SQLiteError) -> [IndexRepair] {
        let rows = try database.rows("SELECT id, name, file, former_set FROM pipelines") { row in
            (id: row.integer(0), name: row.text(1), file: row.optionalText(2), former: row.optionalText(3))
        }
        var repairs: [IndexRepair] = []
        for row in rows {
            if CacheName.error(in: row.name) != nil {
                try database.run("DELETE FROM pipelines WHERE id = ?", .integer(row.id))
                repairs.append(IndexRepair("pipelines", isDropped: true))
                continue
            }
            if let file = row.file, CacheName.error(in: file) != nil {
                try database.run("UPDATE pipelines SET file = NULL WHERE id = ?", .integer(row.id))
                repairs.append(IndexRepair("pipelines.file", isDropped: false))
            }
            let former = PipelineTable.formerSets(row.former)
            if !areValid(formerSets: former) {
                try database.run("UPDATE pipelines SET former_set = NULL WHERE id = ?", .integer(row.id))
                repairs.append(IndexRepair("pipelines.former_set", isDropped: false))
            }
        }
        return repairs
    }
}
