import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

private let url = "https://example.com/jwks"

/// A cache with two generations, both kept.
private func twoGenerations() throws -> (fixture: CacheFixture, destination: CacheDestination) {
    var destination = CacheDestination.jwks
    destination.keep = 5
    let fixture = try CacheFixture()
    try fixture.commit("one", to: destination, validators: [.tag("one")], at: 1)
    try fixture.commit("two", to: destination, validators: [.tag("two")], at: 2)
    return (fixture, destination)
}

@Suite("Content that is not from a check")
struct HeldBackTests {
    @Test("does not undo a rollback that came after its begin")
    func afterRollback() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        guard
            case .unchanged(let generation) = try fixture.commit(
                "two and more", to: destination, isCheck: false)
        else {
            Issue.record("the content was published")
            return
        }
        #expect(generation.number == 1 && generation.isBehind && generation.revision > 0)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.names("generations/jwks").count == 2)
        // The origin's old content is still held back, and other content is published.
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("two"))
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 2))
        guard case .declined(_, isNew: false) = try fixture.commit("two", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
        #expect(try fixture.commit("three", to: destination).generation.number == 3)
    }

    @Test("with the content of a rollback does not count as the origin's content")
    func sameContent() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        let outcome = try fixture.commit("one", to: destination, isCheck: false)
        guard case .unchanged(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.isBehind)
        guard case .declined = try fixture.commit("two", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
    }

    @Test("does not change the state of the origin if the copy is pinned")
    func pinned() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        guard
            case .unchanged(let generation) = try fixture.commit(
                "two and more", to: destination, isCheck: false)
        else {
            Issue.record("the candidate was not dropped")
            return
        }
        #expect(generation.number == 2 && !generation.isBehind && generation.pinnedSince != nil)
        #expect(try fixture.cache.current("jwks")?.isBehind == false)
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("two"))
        // It is new once the origin has it.
        guard case .declined(_, isNew: true) = try fixture.commit("three", to: destination) else {
            Issue.record("the content is not new")
            return
        }
        // The content of the copy, composed again, does not count as the origin's content either.
        #expect(try fixture.commit("two", to: destination, isCheck: false).generation.isBehind)
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        #expect(try fixture.commit("two", to: destination, isCheck: false).generation.isBehind)
        #expect(try fixture.reader() == "two")
        #expect(try fixture.commit("two", to: destination).generation.isBehind == false)
    }

    @Test("restores a copy that was removed since the rollback")
    func putBack() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        let generation = try fixture.commit("two and more", to: destination, isCheck: false).generation
        #expect(generation.number == 1 && generation.isBehind)
        #expect(try fixture.reader() == "one")
    }

    @Test("is published if no content is held back, and keeps the digest of the last check")
    func loadMore() throws {
        let (fixture, destination) = try twoGenerations()
        let more = try fixture.commit("two and more", to: destination, isCheck: false).generation
        #expect(more.number == 3 && !more.isBehind)
        // After a rollback the origin still has the content of the last check, which does not undo the rollback.
        #expect(try fixture.cache.generations.rollBack(destination, to: 1).generation.isBehind)
        guard case .declined(let generation, isNew: false) = try fixture.commit("two", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
        #expect(generation.number == 1)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.commit("three", to: destination).generation.number == 4)
    }

    @Test("can be rolled back to the content of the last check: the copy is then up to date")
    func rollbackToCheck() throws {
        let (fixture, destination) = try twoGenerations()
        try fixture.commit("two and more", to: destination, isCheck: false)
        let outcome = try fixture.cache.generations.rollBack(destination, to: nil)
        #expect(outcome.generation.number == 2 && !outcome.generation.isBehind)
        #expect(try fixture.commit("two and more again", to: destination, isCheck: false).generation.number == 4)
    }
}

@Suite("The generation that readers see")
struct SettledTests {
    @Test("is reported after a rollback or acceptance that failed later, with the highest revision")
    func failedLater() throws {
        for isRollback in [true, false] {
            var calls = 0
            var hasSwitched = false
            // Each call fails in turn, until there are no more calls.
            while true {
                calls += 1
                let files = FailingFileSystem()
                let fixture = try CacheFixture(fileSystem: files)
                let before = [try fixture.commit("one"), try fixture.commit("two")].map(\.generation.revision)
                try fixture.reject("three")
                let chosen = isRollback ? "one" : "three"
                files.arm(.fail(at: calls, errno: EIO))
                do {
                    let outcome =
                        isRollback
                        ? try fixture.cache.generations.rollBack(.jwks, to: nil)
                        : try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 1002))
                    if files.calls.count < calls { break }
                    files.arm(.nothing)
                    #expect(try fixture.reader() == chosen, "call \(calls)")
                    #expect(before.allSatisfy { $0 < outcome.generation.revision } && outcome.replaced == 2)
                    #expect(outcome.generation.isBehind == isRollback)
                    if outcome.failure != nil { hasSwitched = true }
                } catch {
                    files.arm(.nothing)
                    #expect(try fixture.cache.current("jwks")?.number == 2, "call \(calls)")
                    #expect(try fixture.reader() == "two")
                }
                // Rejected content is not lost before it is the copy.
                if !isRollback, try fixture.reader() != chosen {
                    #expect(
                        try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 1003)).generation.number == 3)
                }
            }
            #expect(hasSwitched)
        }
    }
}

@Suite("The digest of the origin's content in the index")
struct OriginTests {
    /// The files of one instant with the index of another, as a power cut may leave them.
    private func combined(cache: String, state: String) throws -> CacheFixture {
        let directory = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(cache, to: directory.cache, links: &links)
        try TemporaryDirectory.copy(state, to: directory.state, links: &links)
        return try CacheFixture(directory)
    }

    @Test("is forgotten by a power cut after new content replaced a copy that was rolled back to")
    func powerCut() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        let before = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(fixture.directory.state, to: before.state, links: &links)
        try fixture.commit("three", to: destination, validators: [.tag("three")])
        let restarted = try combined(cache: fixture.directory.cache, state: before.state)
        let current = try #require(try restarted.cache.current("jwks"))
        #expect(current.number == 3 && !current.isBehind)
        // Otherwise a 304 would mean that the origin still has the copy's content, although it had that before.
        #expect(try restarted.cache.validators("jwks", boundTo: url) == nil)
        // This is the newest known content of the origin: a rollback holds it back.
        _ = try restarted.cache.generations.rollBack(destination, to: 1)
        guard case .declined(_, isNew: false) = try restarted.commit("three", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
    }

    @Test("survives a power cut during a rollback")
    func powerCutInRollback() throws {
        let files = FailingFileSystem()
        var destination = CacheDestination.jwks
        destination.keep = 5
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one", to: destination, validators: [.tag("one")])
        try fixture.commit("two", to: destination, validators: [.tag("two")])
        let before = try TemporaryDirectory.forCache()
        let source = fixture.directory.state
        let isTaken = Mutex(false)
        // The first call after the transaction of the index.
        files.arm(.nothing) {
            isTaken.withLock { isTaken in
                guard !isTaken, files.calls.last == "create" else { return }
                isTaken = true
                var links: [UInt64: String] = [:]
                #expect(throws: Never.self) {
                    try TemporaryDirectory.copy(source, to: before.state, links: &links)
                }
            }
        }
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        files.arm(.nothing)
        let restarted = try combined(cache: fixture.directory.cache, state: before.state)
        let current = try #require(try restarted.cache.current("jwks"))
        #expect(current.number == 1 && current.isBehind)
        #expect(try restarted.cache.validators("jwks", boundTo: url) == .tag("two"))
    }

    @Test("is migrated from the previous format: the held-back content, or else the copy")
    func migration() throws {
        let step = try #require(CacheIndex.migrations.firstIndex { $0.contains("check_digest") })
        let digests = try ["one", "two"].map { try ContentDigest(of: Array($0.utf8)) }
        let path = try TemporaryDirectory.index(ofVersion: step) { database throws(SQLiteError) in
            for (name, origin) in [("current", nil), ("behind", digests[1])] {
                try database.run(
                    "INSERT INTO pipelines (name, current, origin_digest) VALUES (?, 1, ?)", .text(name),
                    origin.map { .blob($0.bytes) } ?? .null)
                try database.run(
                    """
                    INSERT INTO generations (pipeline, number, digest, size, committed_at, inode, modified, changed)
                    VALUES (?, 1, ?, 1, 1, 1, 1, 1)
                    """, .integer(database.lastInsertedRow), .blob(digests[0].bytes))
            }
            try database.run("INSERT INTO pipelines (name) VALUES (?)", .text("new"))
        }
        let index = try CacheIndex(path: path.path + "/index.sqlite", checksPages: true)
        #expect(try index.pipelines.row("current")?.checkDigest == digests[0])
        #expect(try index.pipelines.row("behind")?.checkDigest == digests[1])
        #expect(try index.pipelines.row("new")?.checkDigest == nil)
    }
}
