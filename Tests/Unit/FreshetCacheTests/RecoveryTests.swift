import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("At the start")
struct RecoveryTests {
    /// A closed cache with two generations.
    private func closed() throws -> TemporaryDirectory {
        let fixture = try CacheFixture()
        try fixture.commit("older", validators: [.tag("older")])
        try fixture.commit("current", validators: [.tag("current")])
        return fixture.directory
    }

    private func validators(_ fixture: CacheFixture) throws -> Validators? {
        try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks")
    }

    @Test("after an orderly end nothing is repaired and all state is kept")
    func orderly() throws {
        let fixture = try CacheFixture(try closed())
        #expect(fixture.report == RecoveryReport(index: .opened))
        #expect(try fixture.cache.current("jwks")?.number == 2)
        #expect(try validators(fixture) == .tag("current"))
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 1000))
    }

    @Test("a vanished cache directory is made again, empty, and the next request is unconditional")
    func vanished() throws {
        let directory = try closed()
        TemporaryDirectory.remove(directory.cache)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.lost])])
        #expect(try fixture.cache.current("jwks") == nil)
        #expect(try validators(fixture) == nil)
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == nil)
        #expect(try fixture.commit("current").generation.number == 3)
    }

    @Test("a removed published file is restored")
    func removedReader() throws {
        let directory = try closed()
        try #require(unlink(directory.cache + "/current/jwks.json") == 0)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.restored(2)])])
        #expect(try fixture.reader() == "current")
        #expect(try validators(fixture) == .tag("current"))
    }

    @Test(
        "a copy with a new name, and not fetched since, is not published under it, nor is older content",
        arguments: [false, true])
    func renamed(isPinned: Bool) throws {
        let directory = try TemporaryDirectory.forCache()
        var renamed = CacheDestination.jwks
        renamed.file = "keys.json"
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("older", at: 1)
            try fixture.commit("current", validators: [.tag("current")], at: 2)
            if isPinned { _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 3)) }
            try fixture.cache.ownership.assign([("jwks", "keys.json")])
        }
        let fixture = try CacheFixture(directory)
        #expect(fixture.report == RecoveryReport(index: .opened))
        #expect(try fixture.names("current") == ["jwks.json"])
        #expect(try fixture.reader() == "current")
        #expect(try fixture.cache.current("jwks") == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
        #expect(try fixture.names("generations/jwks").count == 2)
        #expect(try fixture.cache.checker.examine("jwks").findings == [])
        guard case .restored(let generation) = try fixture.commit("current", to: renamed, at: 3) else {
            Issue.record("the content changed")
            return
        }
        #expect(generation.number == 2)
        #expect(try fixture.reader("keys.json") == "current")
        #expect(try fixture.cache.generations.history("jwks").filter(\.isKept).map(\.number) == [2, 1])
    }

    @Test(
        "a copy with a new name, and not fetched since, gets it by a repair, which removes the former name"
    )
    func renamedAndRepaired() throws {
        let fixture = try CacheFixture()
        try fixture.commit("older", at: 1)
        try fixture.commit("current", at: 2)
        try fixture.cache.ownership.assign([("jwks", "keys.json")])
        #expect(try fixture.cache.checker.examineStrays(repairs: true).findings.map(\.isRepaired) == [true])
        #expect(try fixture.cache.checker.examine("jwks", repairs: true).findings.map(\.isRepaired) == [true])
        #expect(try fixture.names("current") == ["keys.json"])
        #expect(try fixture.reader("keys.json") == "current")
    }

    @Test("the replacement of a damaged copy does not have permissions that were removed from the copy")
    func narrowed() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("older", at: 1)
            try fixture.commit("current", at: 2)
            var destination = CacheDestination.jwks
            destination.mode = 0o600
            try fixture.cache.setAccess(destination)
            try TemporaryDirectory.write(Array("EDITED!".utf8), to: directory.cache + "/current/jwks.json")
        }
        let fixture = try CacheFixture(directory)
        #expect(try fixture.reader() == "older")
        #expect(try TemporaryDirectory.mode(directory.cache + "/current/jwks.json") == 0o600)
    }

    @Test("content that was edited in place is replaced by the newest undamaged generation")
    func editedInPlace() throws {
        let directory = try closed()
        try TemporaryDirectory.write(Array("EDITED!".utf8), to: directory.cache + "/current/jwks.json")
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines.first?.repairs.first == .restored(1))
        #expect(try fixture.reader() == "older")
        #expect(try fixture.cache.current("jwks")?.number == 1)
        #expect(try validators(fixture) == nil)
        #expect(try fixture.commit("newest").generation.number == 3)
    }

    @Test("without undamaged content, the damaged file stays and does not count as published")
    func allDamaged() throws {
        let fixture = try CacheFixture()
        var destination = CacheDestination.jwks
        destination.keep = 1
        try fixture.commit("only", to: destination, validators: [.tag("only")])
        let path = fixture.directory.cache + "/current/jwks.json"
        try TemporaryDirectory.write(Array("torn".utf8), to: path)
        let directory = fixture.directory
        let copy = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(directory.cache, to: copy.cache, links: &links)
        try TemporaryDirectory.copy(directory.state, to: copy.state, links: &links)
        let again = try CacheFixture(copy)
        #expect(again.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.lost])])
        #expect(try again.cache.current("jwks") == nil)
        #expect(try again.reader() == "torn")
        guard case .changed(let generation) = try again.commit("only", to: destination) else {
            Issue.record("the commit made no new generation")
            return
        }
        #expect(generation.number == 2)
        #expect(try again.reader() == "only")
    }

    @Test("a file restored from a backup is accepted if its content is right")
    func fromBackup() throws {
        let directory = try closed()
        let path = directory.cache + "/current/jwks.json"
        try #require(unlink(path) == 0)
        try TemporaryDirectory.write(Array("current".utf8), to: path)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.verified(2)])])
        #expect(try validators(fixture) == .tag("current"))
    }

    @Test("damage that kept size and times is found if all content is verified")
    func silentDamage() throws {
        let directory = try closed()
        // Silent damage changes no timestamp: here the index gets the identity of the damaged file.
        let path = directory.cache + "/current/jwks.json"
        try TemporaryDirectory.write(Array("CURRENT".utf8), to: path)
        let identity = try #require(try LinuxFileSystem().status(path)).identity
        do {
            let database = try SQLiteDatabase(path: directory.state + "/index.sqlite", busyTimeout: 1000)
            try database.run(
                "UPDATE generations SET modified = ?, changed = ? WHERE number = 2", .integer(identity.modified),
                .integer(identity.changed))
        }
        do {
            let trusting = try CacheFixture(directory)
            #expect(trusting.report == RecoveryReport(index: .opened))
        }
        let thorough = try CacheFixture(directory, verifiesAll: true)
        #expect(thorough.report.pipelines.first?.repairs.first == .restored(1))
        #expect(try thorough.reader() == "older")
    }

    @Test("a candidate that is published already becomes a generation")
    func promoted() throws {
        let directory = try closed()
        // The state that a power cut may leave if directories are not written in order: the rename in generations/ is
        // lost.
        let candidate = directory.cache + "/generations/jwks/.new-9"
        let reader = directory.cache + "/current/jwks.json"
        try TemporaryDirectory.write(Array("newest".utf8), to: candidate)
        try #require(unlink(reader) == 0)
        try #require(link(candidate, reader) == 0)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.followed(3)])])
        #expect(try fixture.cache.current("jwks")?.number == 3)
        #expect(try fixture.reader() == "newest")
        #expect(try fixture.names("generations/jwks").count == 3)
    }

    @Test("unfinished files of an earlier process are removed, and no other files")
    func leftovers() throws {
        let directory = try closed()
        for name in ["current/.new-7", "generations/jwks/.new-8", "generations/jwks/.new-9", "current/foreign"] {
            try TemporaryDirectory.write([1], to: directory.cache + "/" + name)
        }
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.temporaries == 1)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.removedCandidates(2)])])
        #expect(try fixture.names("current") == ["foreign", "jwks.json"])
    }

    @Test("a damaged index is moved aside and rebuilt from the files")
    func damagedIndex() throws {
        let directory = try closed()
        let index = directory.state + "/index.sqlite"
        try TemporaryDirectory.write(Array("this is no database at all".utf8), to: index)
        do {
            let fixture = try CacheFixture(directory)
            guard case .rebuilt(let aside, _) = fixture.report.index else {
                Issue.record("\(fixture.report)")
                return
            }
            #expect(try TemporaryDirectory.read(aside) == Array("this is no database at all".utf8))
            #expect(
                fixture.report.pipelines == [
                    PipelineRecovery(pipeline: "jwks", repairs: [.followed(2), .adopted(1)])
                ])
            let current = try #require(try fixture.cache.current("jwks"))
            #expect(current.number == 2)
            #expect(try validators(fixture) == nil)
            #expect(try fixture.reader() == "current")
            #expect(try fixture.cache.generations.history("jwks").map(\.causes) == ["adopted", "adopted"])
            #expect(try TemporaryDirectory.mode(index) == 0o600)
        }
        let again = try CacheFixture(directory)
        #expect(again.report == RecoveryReport(index: .opened))
        #expect(try again.commit("next").generation.number == 3)
    }

    @Test("damage in the pages of the index is found too")
    func damagedPage() throws {
        let directory = try closed()
        let index = directory.state + "/index.sqlite"
        var bytes = try TemporaryDirectory.read(index)
        for position in stride(from: 4096, to: bytes.count, by: 64) {
            for offset in position..<min(position + 32, bytes.count) { bytes[offset] = 0x5a }
        }
        try TemporaryDirectory.write(bytes, to: index)
        let fixture = try CacheFixture(directory)
        guard case .rebuilt = fixture.report.index else {
            Issue.record("\(fixture.report)")
            return
        }
        #expect(try fixture.cache.current("jwks")?.number == 2)
    }

    @Test("another program's database is not touched, but moved aside")
    func foreignIndex() throws {
        let directory = try closed()
        let index = directory.state + "/index.sqlite"
        try #require(unlink(index) == 0)
        do {
            let database = try SQLiteDatabase(path: index, busyTimeout: 1000)
            try database.execute("CREATE TABLE theirs (x)")
        }
        let fixture = try CacheFixture(directory)
        guard case .rebuilt(let aside, let reason) = fixture.report.index else {
            Issue.record("\(fixture.report)")
            return
        }
        #expect(reason == "it is another program's database")
        let database = try SQLiteDatabase(path: aside, busyTimeout: 1000)
        #expect(try database.row("SELECT count(*) FROM theirs") { $0.integer(0) } == 0)
    }

    @Test("a newer index fails the start with a remedy, and does not change")
    func newerIndex() throws {
        let newer = CacheIndex.knownVersion + 1
        let directory = try closed()
        let index = directory.state + "/index.sqlite"
        do {
            let database = try SQLiteDatabase(path: index, busyTimeout: 1000)
            try database.execute("PRAGMA user_version = \(newer); CREATE TABLE later (x ANY) STRICT")
        }
        let error = #expect(throws: CacheError.self) { try CacheFixture(directory) }
        #expect(error == .indexNewer(path: index, found: newer, known: CacheIndex.knownVersion))
        #expect(error?.description.contains("install the newer version again") == true)
        let database = try SQLiteDatabase(path: index, busyTimeout: 1000)
        #expect(try database.row("PRAGMA user_version") { $0.integer(0) } == newer)
    }

    @Test("an index of each earlier format is migrated, and keeps its data")
    func earlierFormats() throws {
        for version in 1..<CacheIndex.migrations.count {
            let directory = try TemporaryDirectory.index(ofVersion: version) { database throws(SQLiteError) in
                try database.execute("INSERT INTO pipelines (name, last_attempt, last_success) VALUES ('jwks', 7, 7)")
            }
            let index = try CacheIndex(path: directory.path + "/index.sqlite", checksPages: true)
            #expect(index.opened == .migrated(from: Int64(version)))
            let seven = WallTime(nanoseconds: 7)
            #expect(
                try index.pipelines.refreshState(of: "jwks") == RefreshState(lastAttempt: seven, lastSuccess: seven))
        }
    }

    @Test("dates that earlier versions stored as validators are deleted, and other validators are kept")
    func youngValidators() throws {
        let directory = try TemporaryDirectory.index(ofVersion: 14) { database throws(SQLiteError) in
            try database.execute(
                """
                INSERT INTO pipelines (id, name) VALUES (1, 'jwks');
                INSERT INTO validators (pipeline, url, digest, entity_tag, last_modified) VALUES
                    (1, 'a', zeroblob(32), '"v1"', NULL), (1, 'b', zeroblob(32), '"v1"', 'Sat, 01 Jan 2022 00:00:00 GMT'),
                    (1, 'c', zeroblob(32), NULL, 'Sat, 01 Jan 2022 00:00:00 GMT');
                INSERT INTO parts (pipeline, name, binding, entity_tag, last_modified, value) VALUES
                    (1, 'a', '', '"v1"', NULL, x''), (1, 'b', '', '"v1"', 'Sat, 01 Jan 2022 00:00:00 GMT', x'');
                """)
        }
        let path = directory.path + "/index.sqlite"
        _ = try CacheIndex(path: path, checksPages: true)
        let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
        #expect(try database.rows("SELECT url FROM validators") { $0.text(0) } == ["a"])
        let tags = try database.rows("SELECT entity_tag FROM parts ORDER BY name") { $0.optionalText(0) }
        #expect(tags == ["\"v1\"", nil])
    }

    @Test("a failed migration is rolled back")
    func migrationIsOneTransaction() throws {
        let directory = try TemporaryDirectory.forCache()
        let path = directory.path + "/index.sqlite"
        do {
            // One table of the first step exists already, so the step fails half-way.
            let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
            try database.execute("PRAGMA application_id = \(CacheIndex.applicationID); CREATE TABLE runs (x)")
        }
        #expect(throws: CacheIndex.OpenFailure.self) { _ = try CacheIndex(path: path, checksPages: true) }
        let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
        #expect(try database.rows("SELECT name FROM sqlite_schema") { $0.text(0) } == ["runs"])
        #expect(try database.row("PRAGMA user_version") { $0.integer(0) } == 0)
    }

    @Test("a state directory has one process at a time, and the error names it")
    func locked() throws {
        let fixture = try CacheFixture()
        #expect(throws: CacheError.stateLocked(directory: fixture.directory.state, holder: getpid())) {
            try CacheFixture(fixture.directory)
        }
        try fixture.commit("one")
    }

    @Test("a pipeline that cannot be reconciled does not stop others, and the next access repairs it")
    func oneFails() throws {
        let directory = try closed()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("other", to: CacheDestination(pipeline: "other", file: "other"))
            // Both need a repair.
            try #require(unlink(directory.cache + "/current/jwks.json") == 0)
            try #require(unlink(directory.cache + "/current/other") == 0)
        }
        let files = FailingFileSystem()
        var failed = 0
        for number in 1...40 {
            let copy = try TemporaryDirectory.forCache()
            var links: [UInt64: String] = [:]
            try TemporaryDirectory.copy(directory.cache, to: copy.cache, links: &links)
            try TemporaryDirectory.copy(directory.state, to: copy.state, links: &links)
            files.arm(.fail(at: number, errno: EIO))
            guard let fixture = try? CacheFixture(copy, fileSystem: files) else { continue }
            files.arm(.nothing)
            if fixture.report.pipelines.contains(where: {
                $0.repairs.contains { if case .failed = $0 { true } else { false } }
            }
            ) {
                failed += 1
            }
            #expect(try fixture.cache.current("jwks")?.number == 2, "call \(number)")
            #expect(try fixture.cache.current("other")?.number == 1, "call \(number)")
        }
        #expect(failed > 5)
    }
}

@Suite("While the cache is open")
struct VanishingTests {
    @Test("missing content is not published, has no validators, and a 304 does not count for it")
    func vanished() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("one")])
        TemporaryDirectory.remove(fixture.directory.cache)
        #expect(try fixture.cache.current("jwks") == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == nil)
        #expect(try fixture.cache.records.recordUnchanged("jwks", at: WallTime(seconds: 5)) == nil)
        guard case .restored(let generation) = try fixture.commit("one") else {
            Issue.record("the copy was not restored")
            return
        }
        #expect(generation.number == 1)
        #expect(try fixture.reader() == "one")
        #expect(try TemporaryDirectory.mode(fixture.directory.cache + "/generations") == 0o700)
    }

    @Test("a candidate whose directory vanished fails, and the next one works")
    func vanishedUnderCandidate() throws {
        let fixture = try CacheFixture()
        let pending = try fixture.cache.begin(.jwks)
        try pending.write([1])
        TemporaryDirectory.remove(fixture.directory.cache)
        #expect(throws: CacheError.self) { try pending.commit(at: WallTime(seconds: 1)) }
        #expect(try fixture.cache.current("jwks") == nil)
        #expect(try fixture.commit("one").generation.number == 1)
    }

    @Test("a removed directory of published files is made again by the next commit")
    func vanishedReaders() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one")
        TemporaryDirectory.remove(fixture.directory.cache + "/current")
        try fixture.commit("two")
        #expect(try fixture.reader() == "two")
        #expect(try TemporaryDirectory.mode(fixture.directory.cache + "/current") == 0o755)
    }

    @Test("damage is found before validators are returned; a touched file is not damage")
    func damage() throws {
        let fixture = try CacheFixture()
        let path = try fixture.commit("one", validators: [.tag("one")]).generation.path
        try #require(chmod(path, 0o600) == 0)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("one"))
        try TemporaryDirectory.write(Array("eno".utf8), to: path)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
        #expect(try fixture.cache.current("jwks") == nil)
    }
}
