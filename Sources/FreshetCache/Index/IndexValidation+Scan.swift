import CSQLite
import FreshetModel

/// Reads all values of the index once, and finds out whether it is certain that all are of their kinds. Then no statement
/// of ``IndexValidation`` has to look for errors: SQLite takes twice as long to evaluate their conditions, and each start
/// checks each value.
///
/// A value that is not certain need not be wrong: the statements decide.
extension IndexValidation {
    /// The result of a scan.
    struct Scan {
        /// Whether all values are of their kinds.
        var isSound = true
        /// Whether no generation has a higher number than the last one of its pipeline.
        var hasLastNumbers = true
        /// The number of the last generation, by the rowid of the pipeline.
        fileprivate var lastNumbers: [Int64: Int64] = [:]

        /// Nothing is certain.
        static var skipped: Scan {
            var scan = Scan()
            scan.isSound = false
            return scan
        }
    }

    static func scan(_ database: SQLiteDatabase) throws(SQLiteError) -> Scan {
        var scan = Scan()
        for (table, rules) in tables where scan.isSound { try self.scan(table, rules, in: database, &scan) }
        return scan
    }

    private static func scan(
        _ table: String, _ rules: [Rule], in database: SQLiteDatabase, _ scan: inout Scan
    ) throws(SQLiteError) {
        let columns = rules.map(\.column).joined(separator: ", ")
        let isPipelines = table == "pipelines"
        let owner = rules.firstIndex { $0.kind == .owner }.map { Int32($0) }
        let id = isPipelines ? rules.firstIndex { $0.column == "id" }.map { Int32($0) } : nil
        func column(_ name: String) -> Int32? {
            isPipelines ? rules.firstIndex { $0.column == name }.map { Int32($0) } : nil
        }
        let (name, file, former) = (column("name"), column("file"), column("former_set"))
        let last = rules.firstIndex { $0.kind == .lastNumber }.map { Int32($0) }
        let number =
            ["generations", "history"].contains(table)
            ? rules.firstIndex { $0.column == "number" }.map { Int32($0) } : nil
        let kinds = rules.map { (kind: $0.kind, isOptional: $0.isOptional) }
        var (isSound, hasLastNumbers, lastNumbers) = (true, scan.hasLastNumbers, scan.lastNumbers)
        scan.lastNumbers = [:]
        // The owner of the row before, because the rows of a pipeline follow one another.
        var known: (owner: Int64, last: Int64)?
        try database.walk("SELECT \(columns) FROM \(table)") { row in
            for (index, column) in kinds.enumerated()
            where !column.kind.isCertain(row, Int32(index), isOptional: column.isOptional) {
                isSound = false
                return false
            }
            if let name, let file, let former, !hasValidNames(row, name, file: file, former: former) {
                isSound = false
                return false
            }
            if let id, let last { lastNumbers[row.integer(id)] = row.integer(last) }
            guard let owner else { return true }
            let pipeline = row.integer(owner)
            if known?.owner != pipeline {
                guard let last = lastNumbers[pipeline] else {
                    isSound = false
                    return false
                }
                known = (pipeline, last)
            }
            if let number, let known, row.integer(number) > known.last { hasLastNumbers = false }
            return true
        }
        (scan.isSound, scan.hasLastNumbers, scan.lastNumbers) = (isSound, hasLastNumbers, lastNumbers)
    }
}

extension IndexValidation {
    /// Whether ``dropForeignNames(in:)`` would find no error in the names of a pipeline.
    private static func hasValidNames(
        _ row: borrowing SQLiteRow, _ name: Int32, file: Int32, former: Int32
    ) -> Bool {
        guard CacheName.error(in: row.text(name)) == nil else { return false }
        if let file = row.optionalText(file), CacheName.error(in: file) != nil { return false }
        return areValid(formerSets: PipelineTable.formerSets(row.optionalText(former)))
    }
}

extension IndexValidation.Kind {
    /// Whether a value is certainly of this kind. Whether the owner of a row exists is not examined.
    fileprivate func isCertain(_ row: borrowing SQLiteRow, _ column: Int32, isOptional: Bool) -> Bool {
        let type = row.type(column)
        if type == SQLITE_NULL { return isOptional }
        func isInteger(in range: ClosedRange<Int64>) -> Bool {
            type == SQLITE_INTEGER && range.contains(row.integer(column))
        }
        switch self {
        case .anything, .owner: return type == SQLITE_INTEGER
        case .number: return isInteger(in: IndexBounds.numbers)
        case .lastNumber: return isInteger(in: 0...IndexBounds.numbers.upperBound)
        case .time: return isInteger(in: IndexBounds.times)
        case .size: return isInteger(in: IndexBounds.sizes)
        case .count: return isInteger(in: IndexBounds.counts)
        case .flag: return isInteger(in: IndexBounds.flags)
        case .digest: return type == SQLITE_BLOB && row.byteCount(column) == ContentDigest.byteCount
        case .blob: return type == SQLITE_BLOB
        case .text(let limit): return type == SQLITE_TEXT && row.byteCount(column) <= limit
        case .header:
            return type == SQLITE_TEXT
                && row.withText(column) { text in
                    text.count <= CacheLimits.validatorBytes && text.allSatisfy { (0x20...0x7E).contains($0) }
                }
        case .oneOf(let texts):
            return type == SQLITE_TEXT
                && row.withText(column) { text in texts.contains { text.elementsEqual($0.utf8) } }
        }
    }
}
