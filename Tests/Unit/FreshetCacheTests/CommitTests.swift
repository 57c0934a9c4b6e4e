import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A commit")
struct CommitTests {
    @Test("makes the published file and the generation one inode, with the documented modes")
    func first() throws {
        let fixture = try CacheFixture(TemporaryDirectory())
        #expect(fixture.report == RecoveryReport(index: .made))
        let outcome = try fixture.commit("one")
        guard case .changed(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.number == 1)
        #expect(generation.size == 3)
        #expect(generation.run == 7)
        #expect(generation.committedAt == WallTime(seconds: 1000))
        #expect(
            generation.digest.description == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed")
        #expect(try fixture.cache.current("jwks") == generation.withoutRevision)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.names("current") == ["jwks.json"])
        #expect(try fixture.names("generations/jwks") == ["1-\(generation.digest)"])
        let system = LinuxFileSystem()
        let root = fixture.directory.cache
        let reader = try #require(try system.status(generation.path))
        let stored = try #require(try system.status(root + "/generations/jwks/1-\(generation.digest)"))
        #expect(reader.identity.inode == stored.identity.inode)
        #expect(reader.links == 2)
        #expect(reader.mode == 0o644)
        #expect(try TemporaryDirectory.mode(root + "/current") == 0o755)
        #expect(try TemporaryDirectory.mode(root + "/generations") == 0o700)
        #expect(try TemporaryDirectory.mode(root + "/generations/jwks") == 0o700)
        #expect(try TemporaryDirectory.mode(fixture.directory.state) == 0o700)
        for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "lock"] {
            #expect(try TemporaryDirectory.mode(fixture.directory.state + "/" + name) == 0o600)
        }
    }

    @Test("of the same content makes no generation and changes no inode, but counts as a check")
    func unchanged() throws {
        let fixture = try CacheFixture()
        let first = try fixture.commit("one", validators: [.tag("\"a\"")]).generation
        let before = try LinuxFileSystem().status(first.path)
        let outcome = try fixture.commit("one", validators: [.tag("\"b\"")], at: 2000)
        guard case .unchanged(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.withoutRevision == first.withoutRevision)
        #expect(try LinuxFileSystem().status(first.path) == before)
        #expect(try fixture.names("generations/jwks").count == 1)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("\"b\""))
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 2000))
    }

    @Test("stores whether the source had more content; the same complete content is no longer truncated")
    func truncated() throws {
        let fixture = try CacheFixture()
        #expect(try fixture.commit("one", truncated: true).generation.truncated)
        #expect(try fixture.cache.current("jwks")?.truncated == true)
        #expect(try fixture.cache.records.memories(key: "k").states["jwks"]?.generation?.truncated == true)
        guard case .unchanged(let generation) = try fixture.commit("one") else {
            Issue.record("it changed")
            return
        }
        #expect(!generation.truncated)
        #expect(try fixture.cache.current("jwks")?.truncated == false)
        #expect(try fixture.cache.records.memories(key: "k").states["jwks"]?.generation?.truncated == false)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.generation?.truncated == false)
        #expect(try fixture.commit("two", truncated: true).generation.truncated)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.generation?.truncated == true)
        #expect(try !fixture.commit("three").generation.truncated)
    }

    @Test("stores when the content of each generation expires, and updates the time for the same content")
    func contentExpires() throws {
        let fixture = try CacheFixture()
        func expires() throws -> [WallTime?] {
            [
                try fixture.cache.current("jwks")?.contentExpires,
                try fixture.cache.records.memory("jwks", key: "k")?.generation?.contentExpires,
                try fixture.cache.records.memories(key: "k").states["jwks"]?.generation?.contentExpires,
            ]
        }
        _ = try fixture.commit("one", contentExpires: 5_000)
        #expect(Set(try expires()) == [WallTime(seconds: 5_000)])
        _ = try fixture.commit("one", contentExpires: 6_000)
        #expect(Set(try expires()) == [WallTime(seconds: 6_000)])
        _ = try fixture.commit("two")
        #expect(Set(try expires()) == [nil])
        _ = try fixture.cache.generations.rollBack(.jwks, to: 1)
        #expect(Set(try expires()) == [WallTime(seconds: 6_000)])
    }

    @Test("sets the configured mode, whatever the umask is")
    func mode() throws {
        let fixture = try CacheFixture()
        var destination = CacheDestination.jwks
        for mode: UInt32 in [0o666, 0o640, 0o600] {
            destination.mode = mode
            let path = try fixture.commit("mode \(mode)", to: destination).generation.path
            #expect(try TemporaryDirectory.mode(path) == mode)
        }
    }

    @Test("is not necessary for a new mode: the copy is restricted immediately, and stays the same generation")
    func access() throws {
        let fixture = try CacheFixture()
        let generation = try fixture.commit("one", validators: [.tag("\"a\"")]).generation
        var destination = CacheDestination.jwks
        destination.mode = 0o640
        destination.group = getegid()
        try fixture.cache.setAccess(destination)
        #expect(try TemporaryDirectory.mode(generation.path) == 0o640)
        #expect(try fixture.cache.current("jwks") == generation.withoutRevision)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("\"a\""))
        // The file of another pipeline does not change, and a missing file is not made.
        destination.file = "other.json"
        destination.mode = 0o600
        try fixture.cache.setAccess(destination)
        destination.pipeline = "unknown"
        try fixture.cache.setAccess(destination)
        #expect(try TemporaryDirectory.mode(generation.path) == 0o640)
    }

    @Test("of the same content sets a mode that was changed in the configuration")
    func newMode() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one")
        var destination = CacheDestination.jwks
        destination.mode = 0o640
        #expect(try fixture.commit("one", to: destination).generation.number == 1)
        #expect(try TemporaryDirectory.mode(fixture.directory.cache + "/current/jwks.json") == 0o640)
        #expect(try fixture.cache.current("jwks")?.number == 1)
    }

    @Test("sets the group of the file")
    func group() throws {
        let fixture = try CacheFixture()
        var destination = CacheDestination.jwks
        destination.group = getegid()
        destination.mode = 0o640
        let path = try fixture.commit("one", to: destination).generation.path
        #expect(try LinuxFileSystem().status(path)?.group == getegid())
    }

    @Test("does not change the content for a reader that has the file open")
    func openReader() throws {
        let fixture = try CacheFixture()
        let path = try fixture.commit("one").generation.path
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try fixture.commit("another")
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = read(descriptor, &buffer, buffer.count)
        #expect(String(decoding: buffer.prefix(count), as: UTF8.self) == "one")
        #expect(try fixture.reader() == "another")
    }

    @Test("keeps as many generations as the destination says")
    func keep() throws {
        let fixture = try CacheFixture()
        for number in 1...5 { try fixture.commit("content \(number)") }
        let names = try fixture.names("generations/jwks")
        #expect(names.map { $0.prefix { $0 != "-" } } == ["4", "5"])
        var destination = CacheDestination.jwks
        destination.keep = 1
        try fixture.commit("content 6", to: destination)
        #expect(try fixture.names("generations/jwks").map { $0.prefix { $0 != "-" } } == ["6"])
        #expect(try fixture.cache.current("jwks")?.number == 6)
    }

    @Test("fails with a specific error for content that is empty, too small, too large, or does not fit")
    func refusals() throws {
        let fixture = try CacheFixture()
        let good = try fixture.commit("good").generation
        #expect(throws: CacheError.empty) { try fixture.commit("") }
        var strict = CacheDestination.jwks
        strict.minimumBytes = 4
        strict.maximumBytes = 6
        #expect(throws: CacheError.tooSmall(bytes: 3, minimum: 4)) { try fixture.commit("abc", to: strict) }
        #expect(throws: CacheError.tooLarge(maximum: 6)) { try fixture.commit("abcdefg", to: strict) }
        #expect(try fixture.commit("abcd", to: strict).generation.number == good.number + 1)
        #expect(try fixture.commit("abcdef", to: strict).generation.number == good.number + 2)
        #expect(try fixture.reader() == "abcdef")
        #expect(try fixture.names("generations/jwks").allSatisfy { !$0.hasPrefix(".") })

        var lax = CacheDestination.jwks
        lax.minimumBytes = 0
        #expect(try fixture.commit("", to: lax).generation.size == 0)
    }

    @Test("fails if less space would be free than must stay free")
    func reserve() throws {
        let directory = try TemporaryDirectory.forCache()
        let (cache, _) = try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state,
            reserve: FreeSpaceReserve(percent: 1000, bytes: .max))
        let error = #expect(throws: CacheError.self) { try cache.begin(.jwks) }
        guard case .noSpace(_, let available, let reserve) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(available < reserve)
        #expect(try LinuxFileSystem().list(directory.cache + "/generations/jwks").isEmpty)
    }

    @Test("fails if the index cannot be written now: the error does not advise to move the index away")
    func unwritableIndex() {
        // 778: SQLITE_IOERR_WRITE
        for (number, text) in [(ENOSPC, "free some space"), (EDQUOT, "free some space"), (EROFS, "is read-only")] {
            let error = CacheError.index(
                SQLiteError(code: 778, message: "disk I/O error", during: "COMMIT", systemError: number))
            #expect(error.isTransient && error.description.contains(text))
            #expect(!error.description.contains("move the index away"))
        }
        let locked = CacheError.index(.busy(during: "BEGIN IMMEDIATE"))
        #expect(locked.isTransient && locked.description.contains("another program"))
        #expect(!locked.description.contains("move the index away"))
        let other = CacheError.index(
            SQLiteError(code: 778, message: "disk I/O error", during: "COMMIT", systemError: EIO))
        #expect(!other.isTransient)
    }

    @Test("fails for lack of space, and the error advises what helps", arguments: [0, 1] as [UInt64])
    func remedy(_ reserve: UInt64) {
        for error in [
            CacheError.noSpace(path: "/c", available: 0, reserve: reserve),
            .noSpaceFor(bytes: 9, path: "/c", available: 0, reserve: reserve),
        ] {
            #expect(error.description.contains("lower cache.min-free") == (reserve > 0))
            #expect(error.description.contains("cache.max-total") == (reserve == 0))
        }
    }

    @Test("is not begun if the expected content leaves too little free space, and leaves no file")
    func noSpaceFor() throws {
        let directory = try TemporaryDirectory.forCache()
        let (cache, _) = try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state,
            reserve: FreeSpaceReserve(percent: 1, bytes: 1))
        let error = #expect(throws: CacheError.self) { try cache.begin(.jwks, expecting: .max) }
        guard case .noSpaceFor(let bytes, _, _, let reserve) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(bytes == .max && reserve == 1)
        #expect(try LinuxFileSystem().list(directory.cache + "/generations/jwks").isEmpty)
        try cache.begin(.jwks, expecting: 1).discard()
    }

    @Test("checks the free space again while the content is written")
    func spaceOnTheWay() throws {
        let files = FailingFileSystem()
        let directory = try TemporaryDirectory.forCache()
        let (cache, _) = try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state,
            reserve: FreeSpaceReserve(percent: 1, bytes: 1), verifiesAll: false,
            fileSystem: files)
        let pending = try cache.begin(.jwks)
        defer { pending.discard() }
        files.arm(.nothing)
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        for _ in 0..<16 { try pending.write(piece) }
        #expect(!files.calls.contains("statvfs"))
        try pending.write(piece)
        #expect(files.calls.count { $0 == "statvfs" } == 1)
        try pending.write(piece)
        #expect(files.calls.count { $0 == "statvfs" } == 1)
    }

    @Test("ends its writer: writing or committing afterwards fails")
    func finished() throws {
        let fixture = try CacheFixture()
        let pending = try fixture.cache.begin(.jwks)
        try pending.write(Array("one".utf8))
        #expect(pending.size == 3)
        _ = try pending.commit(at: WallTime(seconds: 1))
        #expect(pending.size == nil)
        #expect(throws: CacheError.finished) { try pending.write([1]) }
        #expect(throws: CacheError.finished) { try pending.commit(at: WallTime(seconds: 1)) }
        pending.discard()
        #expect(try fixture.reader() == "one")
    }

    @Test("leaves no file if it is discarded or released")
    func discarded() throws {
        let fixture = try CacheFixture()
        let pending = try fixture.cache.begin(.jwks)
        try pending.write([1])
        #expect(try fixture.names("generations/jwks").count == 1)
        pending.discard()
        #expect(try fixture.names("generations/jwks").isEmpty)
        var dropped: PendingGeneration? = try fixture.cache.begin(.jwks)
        #expect(dropped?.size == 0)
        dropped = nil
        #expect(try fixture.names("generations/jwks").isEmpty)
        #expect(try fixture.cache.current("jwks") == nil)
    }

    @Test("keeps each file and its generation together, with concurrent commits of several pipelines and of one")
    func concurrent() async throws {
        let fixture = try CacheFixture(TemporaryDirectory())
        let cache = fixture.cache
        try await withThrowingTaskGroup(of: Void.self) { group in
            for pipeline in 0..<4 {
                for writer in 0..<2 {
                    group.addTask {
                        let destination = CacheDestination(pipeline: "p\(pipeline)", file: "f\(pipeline)", keep: 3)
                        for round in 0..<10 {
                            let pending = try cache.begin(destination)
                            try pending.write(Array("\(writer) \(round)".utf8))
                            _ = try pending.commit(at: WallTime(seconds: 1))
                            let current = try #require(try cache.current(destination.pipeline))
                            #expect(current.number > 0)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        for pipeline in 0..<4 {
            let current = try #require(try cache.current("p\(pipeline)"))
            #expect(current.number == 20)
            #expect(try LinuxFileSystem().digest(of: current.path) == current.digest)
            #expect(try fixture.names("generations/p\(pipeline)").count == 3)
        }
    }
}

@Suite("Names and owners of files")
struct CacheNameTests {
    @Test("that are not a single visible path component are rejected")
    func errors() throws {
        let fixture = try CacheFixture()
        let cases: [(String, CacheName.ValidationError)] = [
            ("", .empty), (".hidden", .leadingDot), ("..", .leadingDot), ("a/b", .slash),
            ("a\0b", .controlCharacter), ("a\nb", .controlCharacter),
            (String(repeating: "n", count: CacheLimits.nameBytes + 1), .tooLong),
        ]
        for (name, error) in cases {
            #expect(CacheName.error(in: name) == error)
            let error = CacheError.invalidName(name, reason: error)
            #expect(throws: error) { try fixture.cache.begin(CacheDestination(pipeline: "p", file: name)) }
            #expect(throws: error) { try fixture.cache.begin(CacheDestination(pipeline: name, file: "f")) }
        }
    }

    @Test("of the greatest length work")
    func longest() throws {
        let name = String(repeating: "n", count: CacheLimits.nameBytes)
        #expect(CacheName.error(in: name) == nil)
        let fixture = try CacheFixture()
        try fixture.commit("one", to: CacheDestination(pipeline: name, file: name))
        #expect(try fixture.reader(name) == "one")
    }

    @Test("cannot be shared by two pipelines")
    func shared() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one")
        let expected = CacheError.fileOwned(file: "jwks.json", owner: "jwks", claimant: "other")
        #expect(throws: expected) {
            try fixture.cache.begin(CacheDestination(pipeline: "other", file: "jwks.json"))
        }
        #expect(throws: expected) {
            try fixture.cache.ownership.assign([("jwks", "jwks.json"), ("other", "jwks.json")])
        }
        #expect(try fixture.cache.current("jwks")?.number == 1)
    }

    @Test("can be exchanged by a new configuration; until the next commit no foreign content is published")
    func exchanged() throws {
        let fixture = try CacheFixture()
        try fixture.commit("of a", to: CacheDestination(pipeline: "a", file: "x"))
        try fixture.commit("of b", to: CacheDestination(pipeline: "b", file: "y"))
        try fixture.cache.ownership.assign([("a", "y"), ("b", "x")])
        #expect(try fixture.cache.current("a") == nil)
        #expect(try fixture.cache.current("b") == nil)
        for (pipeline, file) in [("a", "y"), ("b", "x")] {
            let outcome = try fixture.commit("of \(pipeline)", to: CacheDestination(pipeline: pipeline, file: file))
            guard case .restored = outcome else {
                Issue.record("\(outcome)")
                return
            }
        }
        #expect(try fixture.reader("y") == "of a")
        #expect(try fixture.reader("x") == "of b")
    }

    @Test("of a removed pipeline are free for another one; the content stays until the next commit")
    func takenOver() throws {
        let fixture = try CacheFixture()
        try fixture.commit("of a", to: CacheDestination(pipeline: "a", file: "x"))
        try fixture.cache.ownership.assign([("b", "x")])
        #expect(try fixture.cache.current("a") == nil)
        #expect(try fixture.cache.current("b") == nil)
        #expect(try fixture.reader("x") == "of a")
        #expect(try fixture.names("generations/a").count == 1)
        #expect(try fixture.commit("of b", to: CacheDestination(pipeline: "b", file: "x")).generation.number == 1)
        #expect(try fixture.reader("x") == "of b")
    }

    @Test("move with a pipeline: the same content gets the new name and keeps its number")
    func moved() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", to: CacheDestination(pipeline: "a", file: "x"))
        let outcome = try fixture.commit("one", to: CacheDestination(pipeline: "a", file: "y"))
        guard case .restored(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.number == 1)
        #expect(try fixture.reader("y") == "one")
        #expect(try fixture.reader("x") == "one")
    }
}
