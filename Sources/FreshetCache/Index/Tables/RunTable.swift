import FreshetModel

/// The newest runs of each pipeline.
struct RunTable {
    let database: SQLiteDatabase

    /// Old runs are deleted when the number of a run is a multiple of this: a deletion costs twice as much as an
    /// insertion, also if there is nothing to delete.
    static let batch: UInt64 = 16

    /// Stores a run. The table keeps at most ``batch`` - 1 runs more than ``CacheLimits/runsPerPipeline``, which nobody
    /// reads.
    ///
    /// A run of the same number is replaced without `OR REPLACE`: with it, SQLite keeps a copy of each page that the
    /// statement changes, which takes a quarter of the time.
    func put(_ run: RunRecord, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            INSERT INTO runs
                (number, pipeline, causes, started, finished, outcome, error, generation, cause_times, mirror)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET
                causes = excluded.causes, started = excluded.started, finished = excluded.finished,
                outcome = excluded.outcome, error = excluded.error, generation = excluded.generation,
                cause_times = excluded.cause_times, mirror = excluded.mirror
            """, .integer(Int64(clamping: run.number)), .integer(pipeline),
            .text(run.causes.cut(to: CacheLimits.runTextBytes)),
            .time(run.started), .time(run.ended), .text(run.outcome.rawValue),
            SQLiteValue(run.error?.cut(to: CacheLimits.runTextBytes)),
            SQLiteValue(run.generation.map(Int64.init(clamping:))), SQLiteValue(run.causeTimes.text),
            SQLiteValue(run.mirror?.cut(to: CacheLimits.runTextBytes)))
        guard run.number.isMultiple(of: Self.batch) else { return }
        try database.run(
            """
            DELETE FROM runs WHERE pipeline = ?1 AND number <= (
                SELECT number FROM runs WHERE pipeline = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
            """, .integer(pipeline), .integer(Int64(CacheLimits.runsPerPipeline)))
    }

    /// The newest runs of a pipeline, newest first, at most ``CacheLimits/runsPerPipeline``.
    func newest(_ limit: Int, of name: String) throws(SQLiteError) -> [RunRecord] {
        try database.rows(
            """
            SELECT r.number, r.causes, r.started, r.finished, r.outcome, r.error, r.generation, r.cause_times,
                r.mirror
            FROM runs r JOIN pipelines p ON p.id = r.pipeline WHERE p.name = ? ORDER BY r.number DESC LIMIT ?
            """, .text(name), .integer(Int64(min(limit, CacheLimits.runsPerPipeline)))
        ) { row in
            RunOutcome(rawValue: row.text(4)).map {
                RunRecord(
                    pipeline: name, number: UInt64(clamping: row.number(0)), causes: row.text(1),
                    causeTimes: [CauseTimes](text: row.optionalText(7)), started: row.time(2), ended: row.time(3),
                    outcome: $0, error: row.optionalText(5),
                    generation: row.optionalNumber(6).map(UInt64.init(clamping:)), mirror: row.optionalText(8))
            }
        }.compactMap { $0 }
    }
}

extension [CauseTimes] {
    /// The times as the index has them; nil: unknown, or longer than a text of the index.
    fileprivate var text: String? {
        let text = map { "\($0.first.microseconds)-\($0.last.microseconds)" }.joined(separator: " ")
        return isEmpty || text.utf8.count > CacheLimits.runTextBytes ? nil : text
    }

    /// Parses ``text``; empty if it is damaged. A start parses one text of each pipeline.
    init(text: String?) {
        guard var text else {
            self = []
            return
        }
        self = text.withUTF8 { Self.times(in: $0) } ?? []
    }

    /// Nil: the text is damaged.
    private static func times(in text: UnsafeBufferPointer<UInt8>) -> [CauseTimes]? {
        var times: [CauseTimes] = []
        var rest = text[...]
        while !rest.isEmpty {
            guard let first = number(from: &rest), rest.popFirst() == UInt8(ascii: "-"),
                let last = number(from: &rest), first <= last,
                rest.isEmpty || rest.popFirst() == UInt8(ascii: " ")
            else { return nil }
            times.append(CauseTimes(first: WallTime(microseconds: first), last: WallTime(microseconds: last)))
        }
        return times
    }

    /// Takes a number from the front; nil if there is none, or if it is too large.
    private static func number(from rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> Int64? {
        var number: Int64?
        while let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            let (product, overflows) = (number ?? 0).multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !overflows, !overflowsToo else { return nil }
            number = sum
            rest.removeFirst()
        }
        return number
    }
}

extension String {
    /// The longest prefix that has at most `limit` bytes of UTF-8 and does not cut a character.
    func cut(to limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(startIndex, offsetBy: limit)
        while end > startIndex, end.samePosition(in: self) == nil { utf8.formIndex(before: &end) }
        return String(self[..<end])
    }
}
