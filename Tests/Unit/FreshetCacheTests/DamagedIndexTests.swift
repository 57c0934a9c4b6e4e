import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("With a damaged index, published files stay, and the cache starts and works", .serialized)
struct DamagedIndexTests {
    // Long tests yield: other tests need the thread too.

    @Test("each integer column at its extremes")
    func extremes() async throws {
        let pristine = try DamagedIndex.pristine()
        for (table, column, type) in try pristine.columns() where type == "INTEGER" {
            for value in IndexBounds.extremes {
                await Task.yield()
                let damaged = try pristine.copied()
                try damaged.set(column, of: table, to: value)
                try damaged.check("\(table).\(column) = \(value)")
            }
        }
    }

    @Test("each column with a value of another type, too long, or of another kind")
    func types() async throws {
        let pristine = try DamagedIndex.pristine()
        for (offset, (table, column, _)) in try pristine.columns().enumerated() {
            // A third of the values for each column, other values for the next column.
            for (number, value) in IndexBounds.others.enumerated() where (offset + number) % 3 == 0 {
                await Task.yield()
                let damaged = try pristine.copied()
                try damaged.force(column, of: table, to: value)
                // Any name is valid for a pipeline: rows that belong to another name are not queried.
                let isNamed = column != "name" || value != "'text'"
                try damaged.check("\(table).\(column) is \(value)", isNamed: isNamed)
            }
        }
    }

    @Test("each byte of the pages of the schema flipped")
    func schema() async throws {
        let pristine = try DamagedIndex.pristine()
        let bytes = try TemporaryDirectory.read(pristine.path)
        let text = Array("CREATE TABLE".utf8)
        let pages = stride(from: 0, to: bytes.count, by: 4096).filter { start in
            start == 0 || bytes[start..<start + 4096].contains(text)
        }
        #expect(pages.count > 1)
        for offset in pages.flatMap({ $0..<$0 + 4096 }) where offset < 128 || bytes[offset] != 0 {
            // The bytes of the header with all masks; the other bytes with one mask each.
            let masks: [UInt8] = [0x01, 0x80, 0xff]
            for mask in offset < 128 ? masks : offset % 10 == 0 ? [masks[offset / 10 % 3]] : [] {
                await Task.yield()
                let damaged = try pristine.copied()
                var flipped = bytes
                flipped[offset] ^= mask
                try TemporaryDirectory.write(flipped, to: damaged.path)
                try damaged.check("byte \(offset) ^ \(mask)", isThorough: offset % 20 == 0)
            }
        }
    }

    @Test("truncated at any length")
    func truncated() async throws {
        let pristine = try DamagedIndex.pristine()
        let bytes = try TemporaryDirectory.read(pristine.path)
        let boundaries = stride(from: 4096, through: bytes.count, by: 4096).flatMap { [$0 - 1, $0, $0 + 1] }
        for length in Array(0..<128) + Array(stride(from: 128, to: bytes.count, by: 509)) + boundaries
        where length < bytes.count {
            await Task.yield()
            let damaged = try pristine.copied()
            try TemporaryDirectory.write(Array(bytes[..<length]), to: damaged.path)
            let report = try damaged.check("\(length) bytes", isThorough: length % 16 == 0)
            // The last byte may belong to a value.
            if length > 0, length < bytes.count - 1 { #expect(report.isRebuilt, "\(length) bytes") }
        }
    }

    @Test("any page with zeroes, or with noise")
    func pages() async throws {
        let pristine = try DamagedIndex.pristine()
        let bytes = try TemporaryDirectory.read(pristine.path)
        for start in stride(from: 0, to: bytes.count, by: 4096) {
            for filling in [0, 0xff, 0x5a] as [UInt8] {
                await Task.yield()
                let damaged = try pristine.copied()
                var zeroed = bytes
                for offset in start..<start + 4096 { zeroed[offset] = filling }
                try TemporaryDirectory.write(zeroed, to: damaged.path)
                try damaged.check("page \(start / 4096 + 1) of \(filling)")
            }
        }
    }

    @Test("a log or shared memory with invalid content", arguments: ["-wal", "-shm"])
    func log(suffix: String) throws {
        let pristine = try DamagedIndex.pristine()
        for length in [0, 1, 31, 32, 33, 4096, 70_000] {
            let damaged = try pristine.copied()
            try TemporaryDirectory.write(
                (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }, to: damaged.path + suffix)
            try damaged.check("\(length) bytes of \(suffix)")
        }
    }

    @Test("a missing table, an additional table, and a trigger")
    func otherSchema() throws {
        let pristine = try DamagedIndex.pristine()
        for statement in [
            "DROP TABLE runs", "CREATE TABLE more (x)", "ALTER TABLE hooks RENAME COLUMN attempts TO attempt",
            "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM generations; END", "DROP INDEX generations_by_age",
        ] {
            let damaged = try pristine.copied()
            do {
                let database = try SQLiteDatabase(path: damaged.path, busyTimeout: 1000)
                try database.execute(statement)
            }
            let report = try damaged.check("\(statement)")
            #expect(report.isRebuilt, "\(statement)")
        }
        // The tables of ANALYZE are not part of the format.
        let analyzed = try pristine.copied()
        do {
            let database = try SQLiteDatabase(path: analyzed.path, busyTimeout: 1000)
            try database.execute("ANALYZE")
        }
        #expect(try analyzed.check("ANALYZE").index == .opened)
    }

    @Test("a wrong format number with the right tables is repaired, and no data is lost")
    func formatNumber() throws {
        for number in [0, 1, CacheIndex.knownVersion - 1, CacheIndex.knownVersion + 1, 1 << 30, -5] {
            let damaged = try DamagedIndex.pristine()
            do {
                let database = try SQLiteDatabase(path: damaged.path, busyTimeout: 1000)
                try database.execute("PRAGMA user_version = \(number)")
            }
            let report = try damaged.check("format \(number)")
            #expect(report.index == .opened)
            #expect(report.indexRepairs.map(\.place) == ["the number of the format"])
        }
    }

    @Test("an index of a format with the same tables as the next format is migrated")
    func sameTables() throws {
        // The step to format 15 only changes rows.
        for (stated, repairs) in [(14, []), (3, ["the number of the format"])] {
            let damaged = try DamagedIndex.pristine()
            do {
                let database = try SQLiteDatabase(path: damaged.path, busyTimeout: 1000)
                try database.execute(
                    """
                    ALTER TABLE generations DROP COLUMN content_expires;
                    ALTER TABLE runs DROP COLUMN cause_times;
                    ALTER TABLE runs DROP COLUMN mirror;
                    ALTER TABLE history DROP COLUMN mirror;
                    ALTER TABLE rejected RENAME TO refused;
                    ALTER TABLE refused RENAME COLUMN rejected_at TO refused_at;
                    ALTER TABLE hooks RENAME COLUMN succeeded_number TO told_number;
                    ALTER TABLE hooks RENAME COLUMN succeeded_digest TO told_digest;
                    ALTER TABLE hooks RENAME COLUMN succeeded_withdrawn TO told_withdrawn;
                    UPDATE validators SET last_modified = 'Mon, 01 Jan 2024 00:00:00 GMT';
                    PRAGMA user_version = \(stated);
                    """)
            }
            let index = try CacheIndex(path: damaged.path, checksPages: true)
            #expect(index.opened == .migrated(from: 14))
            #expect(index.repairs.map(\.place) == repairs)
            let database = try SQLiteDatabase(path: damaged.path, busyTimeout: 1000)
            #expect(try database.row("SELECT count(*) FROM validators", read: { $0.integer(0) }) == 0)
        }
    }

    @Test("a lost expiry time makes the next response complete, which states the time again")
    func contentExpiry() throws {
        let damaged = try DamagedIndex.pristine()
        try damaged.set("content_expires", of: "generations", to: "-1")
        let fixture = try CacheFixture(damaged.directory)
        #expect(fixture.report.indexRepairs.map(\.place) == ["generations.content_expires"])
        #expect(
            try fixture.cache.context.index.connection.withLock {
                try $0.database.row("SELECT count(*) FROM validators") { $0.integer(0) }
            } == 0)
        #expect(try fixture.cache.current("jwks")?.contentExpires == nil)
    }

    @Test("kept generations stay in the history after its rows are lost")
    func history() throws {
        let damaged = try DamagedIndex.pristine()
        let kept = try CacheFixture(damaged.copied().directory).cache.generations.history("jwks").filter(\.isKept).map(
            \.digest)
        try damaged.set("size", of: "history", to: "-1")
        let history = try CacheFixture(damaged.directory).cache.generations.history("jwks")
        #expect(!kept.isEmpty && history.map(\.digest) == kept && history.allSatisfy { $0.isKept && $0.size > 0 })
    }

    @Test(
        "sizes are compared with the files also if the start that repaired other values was killed before",
        arguments: ["UPDATE runs SET started = -1", "PRAGMA user_version = 3"])
    func killedBeforeSizes(damage: String) throws {
        let damaged = try DamagedIndex.pristine()
        try damaged.set("size", of: "generations", to: "5000")
        do { try SQLiteDatabase(path: damaged.path, busyTimeout: 1000).execute(damage) }
        do {
            let killed = try CacheIndex(path: damaged.path, checksPages: true)
            #expect(!killed.repairs.isEmpty)
        }
        #expect(try CacheFixture(damaged.directory).report.indexRepairs.map(\.place) == ["the size of content"])
        // Once.
        #expect(try CacheFixture(damaged.directory).report.indexRepairs.isEmpty)
        let database = try SQLiteDatabase(path: damaged.path, busyTimeout: 1000)
        #expect(try !IndexValidation.isUnfinished(in: database))
    }

    @Test("each column of the schema has a rule")
    func rules() throws {
        let pristine = try DamagedIndex.pristine()
        let columns = Set(try pristine.columns().map { "\($0.table).\($0.column)" })
        let ruled = IndexValidation.tables.flatMap { table, rules in rules.map { "\(table).\($0.column)" } }
        #expect(Set(ruled) == columns && ruled.count == columns.count)
        #expect(columns.count > 80)
        // The table also has a row; otherwise the tests above did not damage it.
        let database = try SQLiteDatabase(path: pristine.path, busyTimeout: 1000)
        for (table, _) in IndexValidation.tables {
            #expect(try database.row("SELECT count(*) FROM \(table)", read: { $0.integer(0) }) ?? 0 > 0, "\(table)")
        }
    }

    @Test("all values of an undamaged index are in range, and nothing is reported")
    func undamaged() throws {
        let report = try DamagedIndex.pristine().check("undamaged")
        #expect(report == RecoveryReport(index: .opened))
    }

    @Test("the scan of an undamaged index shows that no statement is needed")
    func scanOfUndamaged() throws {
        let pristine = try DamagedIndex.pristine()
        let database = try SQLiteDatabase(path: pristine.path, busyTimeout: 1000)
        let scan = try IndexValidation.scan(database)
        #expect(scan.isSound && scan.hasLastNumbers)
    }

    @Test("the scan misses no value that the statements find")
    func scanOfDamaged() async throws {
        let pristine = try DamagedIndex.pristine()
        let values = IndexBounds.extremes + IndexBounds.others + ["NULL", "'a' || char(10)", "2.0", "'2'", "-1", "0"]
        for (offset, (table, column, type)) in try pristine.columns().enumerated() {
            for (number, value) in values.enumerated() where (offset + number) % 4 == 0 {
                await Task.yield()
                let damaged = try pristine.copied()
                if type == "INTEGER", IndexBounds.extremes.contains(value) {
                    try damaged.set(column, of: table, to: value)
                } else {
                    try damaged.force(column, of: table, to: value)
                }
                let copy = try damaged.copied()
                // Some repairs fail, and the index is replaced then.
                let scanned = try? IndexValidation.perform(on: SQLiteDatabase(path: damaged.path, busyTimeout: 1000))
                let searched = try? IndexValidation.perform(
                    on: SQLiteDatabase(path: copy.path, busyTimeout: 1000), scans: false)
                #expect(scanned == searched, "\(table).\(column) = \(value)")
            }
        }
    }

    @Test("the scan finds a last number that is too low, and a row without a pipeline")
    func scanOfNumbers() throws {
        let pristine = try DamagedIndex.pristine()
        for (table, column, value) in [
            ("pipelines", "last_number", "1"), ("generations", "number", "9 + number"),
            ("history", "number", "9 + number"),
        ] {
            let damaged = try pristine.copied()
            try damaged.set(column, of: table, to: value)
            let scan = try IndexValidation.scan(SQLiteDatabase(path: damaged.path, busyTimeout: 1000))
            #expect(scan.isSound && !scan.hasLastNumbers, "\(table)")
        }
        let damaged = try pristine.copied()
        try damaged.set("pipeline", of: "runs", to: "99")
        #expect(try !IndexValidation.scan(SQLiteDatabase(path: damaged.path, busyTimeout: 1000)).isSound)
    }

    @Test("a few damaged indexes are kept, the newest first")
    func movedAside() throws {
        let damaged = try DamagedIndex.pristine()
        for number in 0..<CacheLimits.damagedIndexes + 2 {
            try TemporaryDirectory.write(Array("damaged \(number)".utf8), to: damaged.path)
            let fixture = try CacheFixture(damaged.directory)
            #expect(fixture.report.isRebuilt)
        }
        let names = try LinuxFileSystem().list(damaged.directory.state).map(\.name).filter { $0.contains("damaged") }
        #expect(names.sorted() == ["index.sqlite.damaged", "index.sqlite.damaged.1", "index.sqlite.damaged.2"])
        #expect(try TemporaryDirectory.read(damaged.path + ".damaged") == Array("damaged 4".utf8))
        #expect(try TemporaryDirectory.read(damaged.path + ".damaged.2") == Array("damaged 2".utf8))
    }

    @Test("damage during use makes the cache replace the index once, without a stop")
    func whileItRuns() throws {
        let damaged = try DamagedIndex.pristine()
        let notified = Told()
        let fixture = try CacheFixture(damaged.directory, rebuilt: { notified.note($0, $1) })
        fixture.cache.flush()
        var bytes = try TemporaryDirectory.read(damaged.path)
        for offset in 4096..<bytes.count { bytes[offset] = 0x5a }
        try TemporaryDirectory.write(bytes, to: damaged.path)
        fixture.cache.context.index.connection.withLock { index in
            // The pages of the index are read again.
            try? index.database.execute("PRAGMA shrink_memory")
        }
        #expect(throws: CacheError.self) { try fixture.cache.records.memories(key: "binding") }
        #expect(notified.reports.count == 1 && notified.reports.first?.hasPrefix(damaged.path) == true)
        #expect(try fixture.cache.current("jwks")?.number == 2)
        #expect(try fixture.cache.current("shop") != nil)
        #expect(try fixture.reader() == "current")
        #expect(try fixture.seen == .of("set"))
        #expect(try fixture.commit("next", at: DamagedIndex.time + 1000).generation.number == 3)
        #expect(try fixture.commitSet("two", at: DamagedIndex.time + 1000).generation.number == 2)
        #expect(notified.reports.count == 1)
        #expect(try LinuxFileSystem().status(damaged.path + ".damaged") != nil)
        // The rejected content is not in the new index, and the next start removes it.
        #expect(try fixture.cache.checker.examine("jwks").findings.filter { $0.kind != .unfinished } == [])
    }
}

@Suite("Leftovers of a killed process")
struct ManyLeftoversTests {
    @Test("are removed later if there are many, and the files next to them work meanwhile")
    func many() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("one")
            try fixture.commitSet("set")
        }
        let count = 300
        let places = ["current/", "generations/jwks/", "sets/shop/"]
        for place in places {
            for number in 1...count {
                let path = directory.cache + "/" + place + ".new-\(number)"
                if place.hasPrefix("sets") {
                    #expect(mkdir(path, 0o755) == 0)
                } else {
                    try TemporaryDirectory.write([1], to: path)
                }
            }
        }
        let rejected = try ContentDigest(of: Array("bad".utf8)).description
        let digests = try (0..<count).map { try ContentDigest(of: [UInt8(truncatingIfNeeded: $0), UInt8($0 / 256)]) }
        for digest in digests.map(\.description) + [rejected] {
            try TemporaryDirectory.write(
                Array("bad".utf8), to: directory.cache + "/generations/jwks/rejected-\(digest)")
        }
        func left(_ fixture: CacheFixture) throws -> Int {
            try places.reduce(0) {
                try $0 + fixture.names($1).count { $0.hasPrefix(".new-") || $0.hasPrefix("rejected-") }
            }
        }
        let fixture = try CacheFixture(directory)
        // The start has removed a few of them.
        #expect(try left(fixture) == 4 * count + 1 - LeftoverFiles.atStart)
        #expect(try fixture.cache.current("jwks")?.number == 1)
        #expect(try fixture.commit("two").generation.number == 2)
        #expect(try fixture.commitSet("other").generation.number == 2)
        // Rejected content stays although a leftover has the same name; content that is being written stays too.
        try fixture.reject("bad")
        let pending = try fixture.cache.begin(.jwks)
        try pending.write([1, 2, 3])
        var batches = 0
        while fixture.cache.leftovers.remove(atMost: 100) { batches += 1 }
        #expect(batches >= 10)
        #expect(try left(fixture) == 2)
        #expect(try fixture.names("generations/jwks").contains("rejected-" + rejected))
        _ = try pending.commit(at: WallTime(seconds: 3000))
        #expect(try fixture.reader() == "\u{1}\u{2}\u{3}")
        #expect(try fixture.seen == .of("other"))
    }

    @Test("with the name of a lost copy are counted correctly while they are removed")
    func lost() throws {
        let directory = try TemporaryDirectory.forCache()
        do { try CacheFixture(directory).commit("one") }
        let stored = try #require(
            try LinuxFileSystem().list(directory.cache + "/generations/jwks").first { !$0.name.hasPrefix(".") })
        for number in 1...100 {
            let path = directory.cache + "/current/.new-\(number)"
            #expect(link(directory.cache + "/generations/jwks/" + stored.name, path) == 0)
        }
        #expect(unlink(directory.cache + "/current/jwks.json") == 0)
        let fixture = try CacheFixture(directory)
        #expect(try fixture.reader() == "one")
        while fixture.cache.leftovers.remove(atMost: 7) {}
        #expect(try fixture.names("current") == ["jwks.json"])
        #expect(try fixture.cache.current("jwks")?.number == 1)
    }
}

extension RecoveryReport {
    fileprivate var isRebuilt: Bool { if case .rebuilt = index { true } else { false } }
}

/// The reports about replaced indexes.
private final class Told: Sendable {
    private let stored = Mutex<[String]>([])

    var reports: [String] { stored.withLock { $0 } }

    func note(_ index: RecoveryReport.Index, _ path: String) { stored.withLock { $0.append("\(path) \(index)") } }
}
