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

@Suite("What comes of no check")
struct HeldBackTests {
    @Test("and was begun before a rollback does not undo it")
    func afterRollback() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.rollBack(destination, to: 1)
        guard
            case .unchanged(let generation) = try fixture.commit(
                "two and more", to: destination, isCheck: false)
        else {
            Issue.record("published")
            return
        }
        #expect(generation.number == 1 && generation.isBehind && generation.turn > 0)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.names("generations/jwks").count == 2)
        // What the origin had is held back as before, and other content comes in.
        #expect(try fixture.cache.validators("jwks", url: url) == .tag("two"))
        #expect(try fixture.cache.refreshState("jwks").lastSuccess == WallTime(seconds: 2))
        guard case .declined(_, isNews: false) = try fixture.commit("two", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
        #expect(try fixture.commit("three", to: destination).generation.number == 3)
    }

    @Test("and has the content that was rolled back to does not make it the origin's")
    func sameContent() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.rollBack(destination, to: 1)
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

    @Test("and finds a pinned copy says nothing of the origin")
    func pinned() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.pin("jwks", at: WallTime(seconds: 5))
        guard
            case .unchanged(let generation) = try fixture.commit(
                "two and more", to: destination, isCheck: false)
        else {
            Issue.record("not dropped")
            return
        }
        #expect(generation.number == 2 && !generation.isBehind && generation.pinnedAt != nil)
        #expect(try fixture.cache.current("jwks")?.isBehind == false)
        #expect(try fixture.cache.validators("jwks", url: url) == .tag("two"))
        // It is news once the origin has it.
        guard case .declined(_, isNews: true) = try fixture.commit("three", to: destination) else {
            Issue.record("not news")
            return
        }
        // The content of the copy, put together anew, is no word of the origin's either.
        #expect(try fixture.commit("two", to: destination, isCheck: false).generation.isBehind)
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        #expect(try fixture.commit("two", to: destination, isCheck: false).generation.isBehind)
        #expect(try fixture.reader() == "two")
        #expect(try fixture.commit("two", to: destination).generation.isBehind == false)
    }

    @Test("puts a copy back that was removed since it was rolled back to")
    func putBack() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.rollBack(destination, to: 1)
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        let generation = try fixture.commit("two and more", to: destination, isCheck: false).generation
        #expect(generation.number == 1 && generation.isBehind)
        #expect(try fixture.reader() == "one")
    }

    @Test("is published where nothing is held back, and leaves what the last check brought")
    func loadMore() throws {
        let (fixture, destination) = try twoGenerations()
        let more = try fixture.commit("two and more", to: destination, isCheck: false).generation
        #expect(more.number == 3 && !more.isBehind)
        // A rollback past it: the origin still has what the check brought, and that does not undo it.
        #expect(try fixture.cache.rollBack(destination, to: 1).generation.isBehind)
        guard case .declined(let generation, isNews: false) = try fixture.commit("two", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
        #expect(generation.number == 1)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.commit("three", to: destination).generation.number == 4)
    }

    @Test("and is rolled back to what the last check brought leaves a copy that is not behind")
    func rollbackToCheck() throws {
        let (fixture, destination) = try twoGenerations()
        try fixture.commit("two and more", to: destination, isCheck: false)
        let outcome = try fixture.cache.rollBack(destination, to: nil)
        #expect(outcome.generation.number == 2 && !outcome.generation.isBehind)
        #expect(try fixture.commit("two and more again", to: destination, isCheck: false).generation.number == 4)
    }
}

@Suite("What readers see")
struct SettledTests {
    @Test("is told after what the operator chose even if the rest of it failed, and is the newest that is told")
    func failedLater() throws {
        for isRollback in [true, false] {
            var calls = 0
            var hasSwitched = false
            // One call after the other fails, up to the one that there is not.
            while true {
                calls += 1
                let files = FaultyFileSystem()
                let fixture = try CacheFixture(fileSystem: files)
                let before = [try fixture.commit("one"), try fixture.commit("two")].map(\.generation.turn)
                try fixture.refuse("three")
                let chosen = isRollback ? "one" : "three"
                files.arm(.fail(at: calls, errno: EIO))
                do {
                    let outcome =
                        isRollback
                        ? try fixture.cache.rollBack(.jwks, to: nil)
                        : try fixture.cache.accept(.jwks, at: WallTime(seconds: 1002))
                    if files.calls.count < calls { break }
                    files.arm(.nothing)
                    #expect(try fixture.reader() == chosen, "call \(calls)")
                    #expect(before.allSatisfy { $0 < outcome.generation.turn } && outcome.replaced == 2)
                    #expect(outcome.generation.isBehind == isRollback)
                    if outcome.failure != nil { hasSwitched = true }
                } catch {
                    files.arm(.nothing)
                    #expect(try fixture.cache.current("jwks")?.number == 2, "call \(calls)")
                    #expect(try fixture.reader() == "two")
                }
                // Nothing that was kept aside is lost before it is the copy.
                if !isRollback, try fixture.reader() != chosen {
                    #expect(try fixture.cache.accept(.jwks, at: WallTime(seconds: 1003)).generation.number == 3)
                }
            }
            #expect(hasSwitched)
        }
    }
}

@Suite("What the index knows of the origin")
struct OriginTests {
    /// The files of one instant with the index of another, as a power cut may leave them.
    private func combined(cache: String, state: String) throws -> CacheFixture {
        let directory = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(cache, to: directory.cache, links: &links)
        try TemporaryDirectory.copy(state, to: directory.state, links: &links)
        return try CacheFixture(directory)
    }

    @Test("is forgotten with a power cut after new content took the place of a copy that was rolled back to")
    func powerCut() throws {
        let (fixture, destination) = try twoGenerations()
        _ = try fixture.cache.rollBack(destination, to: 1)
        let before = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(fixture.directory.state, to: before.state, links: &links)
        try fixture.commit("three", to: destination, validators: [.tag("three")])
        let restarted = try combined(cache: fixture.directory.cache, state: before.state)
        let current = try #require(try restarted.cache.current("jwks"))
        #expect(current.number == 3 && !current.isBehind)
        // Else a 304 would say that the copy is what the origin has, which it had before.
        #expect(try restarted.cache.validators("jwks", url: url) == nil)
        // What it has is this, as far as is known: a rollback holds it back.
        _ = try restarted.cache.rollBack(destination, to: 1)
        guard case .declined(_, isNews: false) = try restarted.commit("three", to: destination) else {
            Issue.record("the rollback was undone")
            return
        }
    }

    @Test("stays with a power cut in a rollback")
    func powerCutInRollback() throws {
        let files = FaultyFileSystem()
        var destination = CacheDestination.jwks
        destination.keep = 5
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one", to: destination, validators: [.tag("one")])
        try fixture.commit("two", to: destination, validators: [.tag("two")])
        let before = try TemporaryDirectory.forCache()
        let source = fixture.directory.state
        let isTaken = Mutex(false)
        // The first call after the index was told.
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
        _ = try fixture.cache.rollBack(destination, to: 1)
        files.arm(.nothing)
        let restarted = try combined(cache: fixture.directory.cache, state: before.state)
        let current = try #require(try restarted.cache.current("jwks"))
        #expect(current.number == 1 && current.isBehind)
        #expect(try restarted.cache.validators("jwks", url: url) == .tag("two"))
    }

    @Test("is, in an index of the format before, what is held back, or else the copy")
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
        var index = try CacheIndex(path: path.path + "/index.sqlite", checksPages: true)
        #expect(try index.pipeline("current")?.checkDigest == digests[0])
        #expect(try index.pipeline("behind")?.checkDigest == digests[1])
        #expect(try index.pipeline("new")?.checkDigest == nil)
    }
}
