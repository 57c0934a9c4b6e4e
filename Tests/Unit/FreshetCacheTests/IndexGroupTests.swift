import FreshetEventLoop
import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("Transactions of concurrent callers")
struct IndexGroupTests {
    @Test("that wait for the same turn are one transaction, and each caller gets its own result")
    func together() throws {
        let bed = try Bed()
        let before = try bed.commits()
        try bed.run(8) { (number, index) throws(SQLiteError) in try index.add("p\(number)") }
        #expect(try bed.commits() == before + 1)
        #expect(bed.results.withLock { $0.values.sorted() } == (0..<8).map { "p\($0)" })
        #expect(try bed.names() == Set((0..<8).map { "p\($0)" }))
    }

    @Test("that come one after another are a transaction each")
    func apart() throws {
        let bed = try Bed()
        let before = try bed.commits()
        for number in 0..<3 {
            _ = try bed.index.transaction { (index) throws(SQLiteError) in try index.add("p\(number)") }
        }
        #expect(try bed.commits() == before + 3)
    }

    @Test("keep their changes if one of them fails, and only that caller gets the error")
    func failing() throws {
        let bed = try Bed()
        _ = bed.cache.records.append(
            RunRecord(
                pipeline: "other", number: 1, causes: "timer", started: WallTime(seconds: 1),
                ended: WallTime(seconds: 2), outcome: .unchanged))
        try bed.run(5) { (number, index) throws(SQLiteError) in
            let name = try index.add("p\(number)")
            if number == 2 { throw SQLiteError(code: 1, message: "no", during: "a test") }
            return name
        }
        #expect(bed.errors.withLock { Array($0.keys) } == [2])
        #expect(try bed.names() == ["other", "p0", "p1", "p3", "p4"])
        #expect(try bed.cache.records.runs("other").count == 1)
    }

    @Test("continue with a new index if one of them finds it damaged, which is reported once")
    func damaged() throws {
        let bed = try Bed()
        try bed.run(5) { (number, index) throws(SQLiteError) in
            if number == 1 { throw SQLiteError.damage("noise", during: "a test") }
            return try index.add("p\(number)")
        }
        #expect(bed.errors.withLock { Array($0.keys) } == [1])
        #expect(bed.rebuilt.withLock { $0 } == 1)
        #expect(bed.index.epoch == 1)
        // The first of the group was stored before the damage was found, in the old index.
        #expect(try bed.names() == ["p2", "p3", "p4"])
    }

    @Test("that need space which is missing fail alone")
    func full() throws {
        let bed = try Bed()
        _ = try bed.index.transaction { (index) throws(SQLiteError) in try index.add("jwks") }
        try bed.cache.context.fill(["state"])
        try bed.run(5) { (number, index) throws(SQLiteError) in
            let id = try index.pipelines.ensureID("jwks")
            if number == 3 { _ = try index.state.set([1], for: "k", of: id) }
            return try index.add("p\(number)")
        }
        #expect(bed.errors.withLock { $0.mapValues { $0.isFullIndex } } == [3: true])
        #expect(try bed.names() == ["jwks", "p0", "p1", "p2", "p4"])
    }

    @Test("wait together for another program, and each counts as lost at the end", .hangLimit)
    func locked() throws {
        let lost = Mutex<[String]>([])
        let bed = try Bed { message in lost.withLock { $0.append(message) } }
        let other = try SQLiteDatabase(path: bed.directory.state + "/index.sqlite", busyTimeout: 0)
        try other.begin()
        bed.cache.limitWaits(to: .zero)
        let reached = Atomic<Int>(0)
        try bed.run(5) { (number, index) throws(SQLiteError) in
            reached.add(1, ordering: .relaxed)
            return try index.add("p\(number)")
        }
        #expect(bed.errors.withLock { $0.count } == 5)
        #expect(reached.load(ordering: .relaxed) == 0)
        bed.cache.flush()
        #expect(
            lost.withLock { $0 } == ["the last 5 records of runs, checks and hooks are lost: database is locked"])
        try other.commit()
        #expect(try bed.names().isEmpty)
    }

    @Test("are durable if one of them is, and the next ones are not")
    func durable() throws {
        let bed = try Bed()
        let level: Bed.Body = { (_, index) throws(SQLiteError) in
            "\(try index.database.row("PRAGMA synchronous") { $0.integer(0) } ?? -1)"
        }
        try bed.run(3, isDurable: { $0 == 1 }, level)
        #expect(bed.results.withLock { Array($0.values) } == ["2", "2", "2"])
        #expect(try bed.index.access { (index) throws(SQLiteError) in try level(0, index) } == "1")
    }

    @Test("are not tried again after a failed flush if they must survive a power cut")
    func flushFails() throws {
        let bed = try Bed()
        let attempts = Mutex<[Int: Int]>([:])
        try bed.run(4, isDurable: { $0 < 2 }) { (number, index) throws(SQLiteError) in
            let attempt = attempts.withLock {
                $0[number, default: 0] += 1
                return $0[number]
            }
            let name = try index.add("p\(number)")
            // SQLITE_IOERR_FSYNC
            if number == 3, attempt == 1 { throw SQLiteError(code: 1034, message: "no", during: "COMMIT") }
            return name
        }
        #expect(bed.errors.withLock { $0.keys.sorted() } == [0, 1])
        #expect(attempts.withLock { $0 } == [0: 1, 1: 1, 2: 2, 3: 2])
        #expect(try bed.names() == ["p2", "p3"])
    }

    @Test("are stored all or not at all if the process is killed")
    func killed() throws {
        let bed = try Bed()
        let copy = Mutex<TemporaryDirectory?>(nil)
        let directory = bed.directory
        try bed.run(4) { (number, index) throws(SQLiteError) in
            let name = try index.add("p\(number)")
            if number == 3 { copy.withLock { $0 = try? directory.copied() } }
            return name
        }
        let killed = try #require(copy.withLock { $0 })
        #expect(try Bed.names(in: CacheFixture(killed).cache.context) == [])
        #expect(try Bed.names(in: CacheFixture(directory.copied()).cache.context) == ["p0", "p1", "p2", "p3"])
    }

    @Test("are seen by the readers that waited with them")
    func readers() throws {
        let bed = try Bed()
        try bed.run(2, reading: 3) { (number, index) throws(SQLiteError) in try index.add("p\(number)") }
        #expect(bed.read.withLock { $0 } == [["p0", "p1"], ["p0", "p1"], ["p0", "p1"]])
    }

    @Test("of first commits count their content once, and no candidate is left over")
    func content() throws {
        let bed = try Bed()
        let held = Latch()
        bed.hold(until: held)
        let done = Atomic<Int>(0)
        for number in 0..<6 {
            bed.pool.perform("commit") { [cache = bed.cache] in
                defer { done.add(1, ordering: .relaxed) }
                guard
                    let pending = try? cache.begin(
                        CacheDestination(pipeline: "p\(number)", file: "f\(number)", keep: 1), isWhole: true)
                else { return }
                try? pending.write(Array("0123456789".utf8))
                _ = try? pending.commit(at: WallTime(seconds: 1))
            }
        }
        try #require(eventually { bed.index.waiting == 6 })
        held.open()
        #expect(eventually { done.load(ordering: .relaxed) == 6 })
        #expect(bed.cache.space.usage.bytes == 60)
        #expect(bed.cache.context.names.unfinishedBytes == 0)
        for number in 0..<6 { #expect(try bed.cache.current("p\(number)")?.number == 1) }
    }

    /// Callers on threads of their own, all of which wait until one that came before lets them continue.
    private final class Bed: Sendable {
        typealias Body = @Sendable (_ number: Int, borrowing CacheIndex) throws(SQLiteError) -> String

        let directory: TemporaryDirectory
        let cache: LocalCache
        let pool = WorkerPool(threads: 16)
        let results = Mutex<[Int: String]>([:])
        let errors = Mutex<[Int: CacheError]>([:])
        let read = Mutex<[Set<String>]>([])
        let rebuilt: RebuildCount
        var index: SharedIndex { cache.context.index }

        final class RebuildCount: Sendable {
            private let count = Mutex(0)
            func add() { count.withLock { $0 += 1 } }
            func withLock<Value: Sendable>(_ body: (Int) -> Value) -> Value { count.withLock { body($0) } }
        }

        init(lost: @escaping @Sendable (String) -> Void = { _ in }) throws {
            directory = try TemporaryDirectory.forCache()
            let rebuilt = RebuildCount()
            self.rebuilt = rebuilt
            cache = try LocalCache.open(
                cacheDirectory: directory.cache, stateDirectory: directory.state, reserve: .none,
                rebuilt: { _, _ in rebuilt.add() }, unrecorded: { _, error in lost(error.description) }
            ).cache
        }

        /// Another caller has the index until the latch opens.
        func hold(until gate: Latch) {
            let began = Latch()
            pool.perform("hold") { [index] in
                _ = try? index.access(storesDeferred: false) { (_) throws(SQLiteError) in
                    began.open()
                    _ = gate.wait(for: testTimeout)
                }
            }
            #expect(began.wait(for: testTimeout))
        }

        /// Runs transactions with the numbers from 0 in one group, and readers with them.
        func run(
            _ count: Int, isDurable: @escaping @Sendable (Int) -> Bool = { _ in false }, reading readers: Int = 0,
            _ body: @escaping Body
        ) throws {
            let gate = Latch()
            hold(until: gate)
            let ended = DoneCount()
            for reader in 0..<readers {
                pool.perform("reader") { [self] in
                    if let names = try? Bed.names(in: cache.context) { read.withLock { $0.append(names) } }
                    ended.add()
                }
                try #require(eventually { index.waiting == reader + 1 })
            }
            // One after another, so that the order in the group is known.
            for number in 0..<count {
                pool.perform("transaction") { [self] in
                    do throws(CacheError) {
                        let value = try index.transaction(isDurable: isDurable(number)) { (index) throws(SQLiteError) in
                            try body(number, index)
                        }
                        results.withLock { $0[number] = value }
                    } catch {
                        errors.withLock { $0[number] = error }
                    }
                    ended.add()
                }
                try #require(eventually { index.waiting == readers + number + 1 })
            }
            gate.open()
            #expect(eventually { ended.value == count + readers })
        }

        private final class DoneCount: Sendable {
            private let count = Atomic<Int>(0)
            func add() { count.add(1, ordering: .acquiringAndReleasing) }
            var value: Int { count.load(ordering: .acquiring) }
        }

        func names() throws -> Set<String> { try Self.names(in: cache.context) }

        static func names(in context: CacheContext) throws(CacheError) -> Set<String> {
            Set(try context.reading { (index) throws(SQLiteError) in try index.pipelines.all().map(\.name) })
        }

        /// The number of transactions in the index's log: frames that state the size of the database end one.
        func commits() throws -> Int {
            let log = try TemporaryDirectory.read(directory.state + "/index.sqlite-wal")
            func number(at offset: Int) -> Int { log[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
            guard log.count >= 32 else { return 0 }
            let (page, salt) = (number(at: 8), log[16..<24])
            return stride(from: 32, through: log.count - 24 - page, by: 24 + page)
                .count { log[($0 + 8)..<($0 + 16)] == salt && number(at: $0 + 4) != 0 }
        }
    }
}

extension CacheIndex {
    /// Makes a row for a pipeline, and returns its name.
    fileprivate func add(_ name: String) throws(SQLiteError) -> String { try pipelines.ensure(name).name }
}
