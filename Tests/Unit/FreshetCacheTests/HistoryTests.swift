import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The history")
struct HistoryTests {
    private func run(_ number: Int64, _ outcome: RunOutcome, generation: UInt64?) -> RunRecord {
        RunRecord(
            pipeline: "jwks", number: UInt64(number), causes: "timer \(number)", started: WallTime(seconds: number),
            ended: WallTime(seconds: 2 * number), outcome: outcome, generation: generation)
    }

    @Test("lists kept and removed generations, newest first, with the causes of their runs")
    func entries() throws {
        let fixture = try CacheFixture()
        #expect(try fixture.cache.generations.history("jwks").isEmpty)
        for number: Int64 in 1...3 {
            try fixture.commit("content \(number)", at: number)
            try fixture.cache.records.record(run(number, .changed, generation: UInt64(number)))
        }
        try fixture.cache.records.record(run(4, .unchanged, generation: 3))
        try fixture.cache.records.record(run(5, .failed, generation: nil))
        let history = try fixture.cache.generations.history("jwks")
        #expect(history.map(\.number) == [3, 2, 1])
        #expect(history.map(\.isKept) == [true, true, false])
        #expect(history.map(\.causes) == ["timer 3", "timer 2", "timer 1"])
        #expect(history.map(\.duration) == [.seconds(3), .seconds(2), .seconds(1)])
        #expect(history.map(\.size) == [9, 9, 9])
        #expect(history.map(\.committedAt) == [3, 2, 1].map { WallTime(seconds: $0) })
        #expect(try fixture.cache.generations.history("jwks", limit: 1).map(\.number) == [3])
        #expect(try fixture.cache.generations.history("unknown").isEmpty)
    }

    @Test("has a limit, beyond which only kept generations are listed")
    func limit() throws {
        let fixture = try CacheFixture()
        for number in 1...Int(CacheLimits.historyPerPipeline) + 3 { try fixture.commit("content \(number)") }
        let history = try fixture.cache.generations.history("jwks")
        #expect(history.count == Int(CacheLimits.historyPerPipeline))
        #expect(history.first?.number == CacheLimits.historyPerPipeline + 3)
        #expect(history.last?.number == 4)
    }

    @Test("is migrated from the generations and runs of the previous format")
    func migration() throws {
        let step = try #require(CacheIndex.migrations.firstIndex { $0.contains("CREATE TABLE history") })
        let digest = try ContentDigest(of: Array("one".utf8))
        let directory = try TemporaryDirectory.index(ofVersion: step) { database throws(SQLiteError) in
            try database.run("INSERT INTO pipelines (name, current) VALUES (?, 1)", .text("jwks"))
            let row = database.lastInsertedRow
            try database.run(
                """
                INSERT INTO generations (pipeline, number, digest, size, committed_at, inode, modified, changed)
                VALUES (?, 1, ?, 3, 7, 1, 1, 1)
                """, .integer(row), .blob(digest.bytes))
            for number: Int64 in 1...2 {
                try database.run(
                    "INSERT INTO runs VALUES (?, ?, 'timer', 1, 2, 'changed', NULL, 1)", .integer(row),
                    .integer(number))
            }
        }
        let index = try CacheIndex(path: directory.path + "/index.sqlite", checksPages: true)
        let row = try #require(try index.pipelines.row("jwks")).id
        let history = try index.history.newest(9, of: row)
        #expect(history.map(\.number) == [1])
        #expect(history.first?.isKept == true && history.first?.causes == "timer")
    }
}

@Suite("Reading a generation")
struct StoredGenerationTests {
    private let root = FileReader(user: 0, groups: [])
    private let stranger = FileReader(user: 65_534, groups: [65_534])

    private func text(_ generation: StoredGeneration?) throws -> String {
        let generation = try #require(generation)
        var bytes: [UInt8] = []
        while case let next = try generation.read(2), !next.isEmpty { bytes += next }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("returns the complete content of any kept generation, whatever is committed meanwhile")
    func content() throws {
        let fixture = try CacheFixture()
        try fixture.commit("first")
        try fixture.commit("second")
        let open = try fixture.cache.generations.open(1, of: "jwks", for: root)
        try fixture.commit("third")
        #expect(try text(open) == "first")
        #expect(try text(try fixture.cache.generations.open(2, of: "jwks", for: root)) == "second")
        #expect(throws: CacheError.notKept(1, kept: [2, 3])) {
            try fixture.cache.generations.open(1, of: "jwks", for: root)
        }
        #expect(throws: CacheError.notKept(1, kept: [])) {
            try fixture.cache.generations.open(1, of: "unknown", for: root)
        }
    }

    @Test("fails if the file is damaged, missing or a symbolic link")
    func damaged() throws {
        let fixture = try CacheFixture()
        try fixture.commit("first")
        try fixture.commit("second")
        let path = fixture.directory.cache + "/generations/jwks/" + (try fixture.names("generations/jwks")[0])
        try TemporaryDirectory.write(Array("other".utf8), to: path)
        #expect(throws: CacheError.damaged(1)) { try fixture.cache.generations.open(1, of: "jwks", for: root) }
        #expect(unlink(path) == 0)
        #expect(throws: CacheError.damaged(1)) { try fixture.cache.generations.open(1, of: "jwks", for: root) }
        #expect(symlink("/etc/passwd", path) == 0)
        #expect(throws: CacheError.damaged(1)) { try fixture.cache.generations.open(1, of: "jwks", for: root) }
    }

    @Test("that a commit removes meanwhile fails as not kept, and not as damaged")
    func pruned() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        defer { files.disarm() }
        try fixture.commit("first")
        try fixture.commit("second")
        let isCommitted = Mutex(false)
        // Between the query of the index and the status of the file.
        files.arm(.nothing) {
            let isFirst = isCommitted.withLock { isCommitted in
                defer { isCommitted = true }
                return !isCommitted
            }
            if isFirst { #expect(throws: Never.self) { try fixture.commit("third") } }
        }
        #expect(throws: CacheError.notKept(1, kept: [2, 3])) {
            try fixture.cache.generations.open(1, of: "jwks", for: root)
        }
        #expect(isCommitted.withLock { $0 })
    }

    @Test("is allowed for users who may read both that file and the copy, through the directories above")
    func rights() throws {
        let fixture = try CacheFixture(TemporaryDirectory())
        #expect(chmod(fixture.directory.path, 0o755) == 0)
        var closed = CacheDestination.jwks
        closed.mode = 0o640
        closed.keep = 9
        var open = closed
        open.mode = 0o644
        try fixture.commit("open", to: open)
        try fixture.commit("closed", to: closed)
        try fixture.commit("open again", to: open)
        func mayRead(_ number: Int64, _ reader: FileReader) throws -> Bool {
            try fixture.cache.generations.open(number, of: "jwks", for: reader) != nil
        }
        let member = FileReader(user: 65_534, groups: [65_534, getegid()])
        let owner = FileReader(user: geteuid(), groups: [])
        for reader in [root, member, owner] {
            for number: Int64 in 1...3 { #expect(try mayRead(number, reader)) }
        }
        #expect(try mayRead(1, stranger))
        #expect(try !mayRead(2, stranger))
        #expect(try mayRead(3, stranger))
        // The copy is restricted from now on, and so are generations that were written with a wider mode.
        try fixture.cache.setAccess(closed)
        #expect(try !mayRead(1, stranger))
        #expect(try mayRead(1, member))
        try fixture.cache.setAccess(open)
        #expect(try mayRead(1, stranger))
        #expect(chmod(fixture.directory.path, 0o711) == 0)
        #expect(try mayRead(1, stranger))
        #expect(chmod(fixture.directory.path, 0o700) == 0)
        #expect(try !mayRead(1, stranger))
        #expect(try mayRead(1, root))
        // Without a copy it is not known who may read the content now.
        #expect(chmod(fixture.directory.path, 0o755) == 0)
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        #expect(try !mayRead(1, stranger))
        #expect(try mayRead(1, owner))
    }

    @Test("depends on the first of owner, group and others that applies, as in the kernel")
    func classes() {
        func status(_ mode: UInt32) -> FileStatus {
            FileStatus(identity: .none, mode: mode, group: 20, owner: 10, links: 1, isRegularFile: true)
        }
        let owner = FileReader(user: 10, groups: [20])
        let member = FileReader(user: 11, groups: [5, 20])
        #expect(!owner.has(4, on: status(0o077)))
        #expect(owner.has(4, on: status(0o400)))
        #expect(!member.has(4, on: status(0o707)))
        #expect(member.has(1, on: status(0o010)))
        #expect(!stranger.has(4, on: status(0o770)))
        #expect(stranger.has(4, on: status(0o004)))
        #expect(root.has(4, on: status(0)))
    }
}
