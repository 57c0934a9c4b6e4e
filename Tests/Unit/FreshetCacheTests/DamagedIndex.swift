import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

/// A cache with a row in each table of its index, which a test damages.
struct DamagedIndex {
    let directory: TemporaryDirectory
    /// The time of the first commit, in seconds since 1970: in 2023.
    static let time: Int64 = 1_700_000_000

    var path: String { directory.state + "/index.sqlite" }

    /// Two pipelines, one of them with several files, that use all tables of the index.
    static func pristine() throws -> DamagedIndex {
        let fixture = try CacheFixture()
        let (cache, now) = (fixture.cache, WallTime(seconds: Self.time + 3))
        try fixture.commit("older", validators: [.tag("older")], at: time)
        try fixture.commit("current", validators: [.tag("current")], at: time + 1, contentExpires: time + 90)
        try fixture.commitSet("set", at: time + 1)
        try fixture.reject("bad", at: time + 2)
        try cache.records.record(
            RunRecord(
                pipeline: "jwks", number: 7, causes: "start", started: WallTime(seconds: time), ended: now,
                outcome: .changed, error: "none", generation: 2, mirror: "https://a.example/"))
        try cache.records.setState("jwks", key: "binding", to: [1, 2])
        try cache.records.recordRequests("jwks", [RequestBurst(first: now, last: now, count: 3)])
        try cache.records.recordParameters("jwks") { ["region": "eu"] }
        let pages = StoredPages(items: Array("[]".utf8), count: 2, next: PageBookmark("2 1 home\nh\nu\n"), token: "t")
        try cache.records.keepParts(
            of: "jwks", new: ["": StoredPart(binding: "b", validators: .tag("e"), value: [1], pages: pages)]
        ) { _ in true }
        _ = try cache.records.assignHooks([PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: nil)])
        let notified = GenerationIdentity(number: 1, digest: try ContentDigest(of: Array("older".utf8)))
        try cache.records.record(
            StoredHookState(notified: notified, tried: notified, attempts: 2, failingSince: now, error: "e"), of: "a",
            of: "jwks")
        try cache.context.transaction { (index) throws(SQLiteError) in
            let id = try index.pipelines.ensure("jwks").id
            try index.accepted.add(notified.digest, of: id)
        }
        return DamagedIndex(directory: fixture.directory)
    }

    func copied() throws -> DamagedIndex { DamagedIndex(directory: try directory.copied()) }

    /// Columns of all tables, with their types.
    func columns() throws -> [(table: String, column: String, type: String)] {
        let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
        return try database.rows(
            """
            SELECT m.name, c.name, c.type FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
            ORDER BY m.name, c.cid
            """
        ) { (table: $0.text(0), column: $0.text(1), type: $0.text(2)) }
    }

    /// Sets a column of all rows to an SQL expression. If the rows would then be equal, only one row gets it.
    func set(_ column: String, of table: String, to expression: String) throws {
        let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
        try database.run("UPDATE OR IGNORE \(table) SET \(column) = \(expression)")
    }

    /// The same, regardless of the declared type of the column.
    func force(_ column: String, of table: String, to expression: String) throws {
        let texts: [(row: Int64, text: String)]
        do {
            let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
            texts = try database.rows("SELECT rowid, sql FROM sqlite_schema WHERE sql IS NOT NULL") {
                ($0.integer(0), $0.text(1))
            }
            try rewrite(texts.map { ($0.row, Self.loosened($0.text)) }, database)
        }
        do {
            let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
            // A rowid is always an integer.
            try? database.run("UPDATE OR IGNORE \(table) SET \(column) = \(expression)")
            try rewrite(texts, database)
        }
    }

    private func rewrite(_ texts: [(row: Int64, text: String)], _ database: SQLiteDatabase) throws {
        try database.execute("PRAGMA writable_schema = ON")
        for (row, text) in texts {
            try database.run("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", .text(text), .integer(row))
        }
    }

    private static func loosened(_ text: String) -> String {
        var result = text
        for (part, other) in [
            ("STRICT, ", ""), (" STRICT", ""), ("NOT NULL", ""), ("INTEGER PRIMARY KEY", "ROWNUMBER"),
            ("INTEGER", "ANY"), ("TEXT", "ANY"), ("BLOB", "ANY"), ("ROWNUMBER", "INTEGER PRIMARY KEY"),
        ] {
            result = result.split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
        }
        return result
    }

    /// Starts with the index, and checks the guarantees for a user: the published files, a result for each query, the
    /// next commit, one report of the errors, and no report at the next start.
    ///
    /// - Parameter isNamed: whether the names of pipelines are the configured ones.
    /// - Returns: the report of the start.
    @discardableResult
    func check(_ situation: Comment, isThorough: Bool = true, isNamed: Bool = true) throws -> RecoveryReport {
        let report: RecoveryReport
        do {
            let fixture = try CacheFixture(directory, limit: 1 << 20)
            report = fixture.report
            // This is what the daemon does.
            try fixture.cache.ownership.assign([("jwks", "jwks.json"), ("shop", "catalogue.stamp")], sets: ["shop"])
            #expect(try fixture.reader() == "current", situation)
            #expect(try fixture.seen == .of("set"), situation)
            for pipeline in isNamed ? ["jwks", "shop"] : [] {
                #expect(try fixture.cache.current(pipeline) != nil, situation)
            }
            if case .rebuilt(let aside, let reason) = report.index {
                #expect(!reason.isEmpty && report.indexRepairs.isEmpty, situation)
                #expect(try LinuxFileSystem().status(aside) != nil, situation)
            }
            if isThorough { try use(fixture, situation, isNamed: isNamed) }
        }
        if isThorough {
            let again = try CacheFixture(directory)
            #expect(again.report.index == .opened && again.report.indexRepairs == [], situation)
            #expect(try again.reader() == "next", situation)
        }
        return report
    }

    /// Calls all queries, and writes to all tables.
    private func use(_ fixture: CacheFixture, _ situation: Comment, isNamed: Bool) throws {
        let cache = fixture.cache
        for (name, memory) in try cache.records.memories(key: "binding").states {
            #expect(CacheName.error(in: name) == nil, situation)
            #expect(memory.lastRun <= IndexBounds.numbers.upperBound, situation)
            #expect(memory.requests.allSatisfy { IndexBounds.counts.contains(Int64($0.count)) }, situation)
            #expect(memory.pages.allSatisfy { IndexBounds.counts.contains(Int64($0.count)) }, situation)
            if let rejected = memory.rejected { #expect(rejected.keptUntil >= rejected.rejectedAt, situation) }
            _ = try cache.records.memory(name, key: "binding")
        }
        let usage = cache.space.usage.bytes
        #expect((0...10_000).contains(usage), "\(situation): \(usage) bytes")
        _ = try (
            cache.generations.history("jwks"), cache.records.runs("jwks"), cache.records.part("", of: "jwks"),
            cache.pruner.holdings(besides: [])
        )
        let findings = try cache.checker.examine("jwks").findings.filter {
            ![.rejectedDamaged, .unfinished].contains($0.kind)
        }
        #expect(findings == [] || !isNamed, situation)
        let hooks = try cache.records.assignHooks([PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: nil)])
        var record = try #require(hooks["jwks"]?["a"])
        #expect(IndexBounds.counts.contains(Int64(record.attempts)), situation)
        record.attempts += 1
        try cache.records.record(record, of: "a", of: "jwks")
        if try cache.current("jwks")?.pinnedSince != nil { _ = try cache.generations.unpin("jwks") }
        let made = try fixture.commit("next", at: Self.time + 1000)
        #expect(made.generation.number > 0, situation)
        #expect(try fixture.reader() == "next", situation)
        let run = (try cache.records.memory("jwks", key: "binding")?.lastRun ?? 0) + 1
        try cache.records.record(
            RunRecord(
                pipeline: "jwks", number: UInt64(run), causes: "start", started: WallTime(seconds: 1),
                ended: WallTime(seconds: 2),
                outcome: .changed, generation: UInt64(made.generation.number)))
    }
}

extension IndexBounds {
    /// The greatest and smallest integers.
    static let extremes = ["-9223372036854775808", "-1", "0", "1", "2147483647", "9223372036854775807"]
    /// Values of a wrong type, for numbers and for texts.
    static let others = [
        "NULL", "9e999", "-9e999", "1e300", "0.5", "'text'", "x'ff00'", "''", "x''", "hex(zeroblob(50000))",
        "zeroblob(100000)", "'../../etc' || char(13, 10) || 'a: b' || char(769, 769, 769)",
    ]
}
