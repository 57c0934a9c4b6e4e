import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// A cache with two generations of a pipeline.
private struct Examined {
    let fixture: CacheFixture
    let destination: CacheDestination

    init(_ directory: TemporaryDirectory? = nil, fileSystem: any FileSystem = LinuxFileSystem()) throws {
        var destination = CacheDestination.jwks
        destination.keep = 5
        self.destination = destination
        fixture = try CacheFixture(directory, fileSystem: fileSystem)
        try fixture.commit("one", to: destination, validators: [.tag("one")], at: 1)
        try fixture.commit("two", to: destination, validators: [.tag("two")], at: 2)
    }

    var cache: LocalCache { fixture.cache }
    var copy: String { fixture.directory.cache + "/current/jwks.json" }
    var generations: String { fixture.directory.cache + "/generations/jwks" }

    func path(_ number: Int) throws -> String {
        let name = try #require(try fixture.names("generations/jwks").first { $0.hasPrefix("\(number)-") })
        return generations + "/" + name
    }

    /// Examines the whole cache, as the daemon does.
    func examine(repairs: Bool = false) throws -> [CacheFinding] {
        try cache.checker.examineIndex().findings + cache.checker.examineStrays(repairs: repairs).findings
            + cache.checker.examinable().flatMap { try cache.checker.examine($0, repairs: repairs).findings }
    }

    /// Checks that an examination finds exactly these errors, repairs them all, and finds no more.
    func expect(_ kinds: [CacheFinding.Kind], left: [CacheFinding.Kind] = []) throws {
        let found = try examine()
        #expect(found.map(\.kind) == kinds)
        #expect(found.allSatisfy { !$0.isRepaired })
        let repaired = try examine(repairs: true)
        #expect(repaired.filter { !$0.isRepaired }.map(\.kind) == left)
        #expect(repaired.filter(\.isRepaired).map(\.kind) == kinds.filter { !left.contains($0) })
        #expect(try examine().map(\.kind) == left)
    }

    func stray(_ name: String) throws -> [String] {
        try fixture.names("strays").filter { $0.hasSuffix("-" + name) }
    }
}

/// Overwrites a file in place.
private func damage(_ path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, "?", 1, 0) == 1)
}

@Suite("An examination of the cache")
struct ExaminationTests {
    @Test("finds no error in an undamaged cache, and counts the content that it has read")
    func sound() throws {
        let scene = try Examined()
        try scene.expect([])
        let examination = try scene.cache.checker.examine("jwks")
        #expect(examination.generations == 2 && examination.bytes == 6 && examination.published == nil)
        #expect(try scene.cache.checker.examine("unknown") == CacheExamination())
        #expect(try scene.cache.checker.examinable() == ["jwks"])
        #expect(try scene.fixture.names("") == ["current", "generations"])
    }

    @Test("finds a damaged older generation, which a repair removes")
    func olderGeneration() throws {
        let scene = try Examined()
        try damage(try scene.path(1))
        try scene.expect([.contentDamaged])
        #expect(try scene.fixture.names("generations/jwks").count == 1)
        #expect(try scene.fixture.reader() == "two")
        #expect(throws: CacheError.notKept(1, kept: [2])) {
            try scene.cache.generations.rollBack(scene.destination, to: 1)
        }
        #expect(try scene.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("two"))
    }

    @Test("finds a damaged copy: a repair restores the newest undamaged generation; the next request is unconditional")
    func copy() throws {
        let scene = try Examined()
        try damage(scene.copy)
        #expect(try scene.examine().map(\.kind) == [.contentDamaged, .copyDamaged])
        let repaired = try scene.cache.checker.examine("jwks", repairs: true)
        #expect(repaired.findings.allSatisfy { $0.isRepaired })
        #expect(repaired.published?.number == 1 && (repaired.published?.revision ?? 0) > 0)
        #expect(try scene.fixture.reader() == "one")
        #expect(try scene.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.names("").contains("strays") == false)
        #expect(repaired.lostRevision == nil)
        #expect(try scene.fixture.commit("two", to: scene.destination).generation.number == 3)
    }

    @Test("a copy that is committed after a repair found none has a higher revision than the loss")
    func lossBeforeCommit() throws {
        let scene = try Examined()
        for number in 1...2 { try damage(try scene.path(number)) }
        let lost = try #require(try scene.cache.checker.examine("jwks", repairs: true).lostRevision)
        #expect(try scene.fixture.commit("three", to: scene.destination).generation.revision > lost)
    }

    @Test("that finds only damaged content removes it all in a repair, so that it is fetched again")
    func allDamaged() throws {
        let scene = try Examined()
        try damage(try scene.path(1))
        try damage(scene.copy)
        #expect(try scene.examine(repairs: true).allSatisfy { $0.isRepaired })
        #expect(try scene.fixture.readerIfAny() == nil)
        #expect(try scene.cache.current("jwks") == nil)
        #expect(try scene.fixture.names("generations/jwks").isEmpty)
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.commit("two", to: scene.destination).generation.number == 3)
    }

    @Test("finds a missing copy, and another file in its place, which a repair moves aside unchanged")
    func foreignCopy() throws {
        let scene = try Examined()
        #expect(unlink(scene.copy) == 0)
        try scene.expect([.copyMissing])
        #expect(try scene.fixture.reader() == "two")
        #expect(unlink(scene.copy) == 0)
        try TemporaryDirectory.write(Array("somebody's".utf8), to: scene.copy)
        try scene.expect([.copyDamaged])
        #expect(try scene.fixture.reader() == "two")
        let name = try #require(try scene.stray("jwks.json").first)
        let aside = try TemporaryDirectory.read(scene.fixture.directory.cache + "/strays/" + name)
        #expect(String(decoding: aside, as: UTF8.self) == "somebody's")
        #expect(try TemporaryDirectory.mode(scene.fixture.directory.cache + "/strays") == 0o700)
    }

    @Test("does not follow symbolic links, and does not write through them")
    func links() throws {
        let scene = try Examined()
        let elsewhere = scene.fixture.directory.path + "/elsewhere"
        try TemporaryDirectory.write(Array("theirs".utf8), to: elsewhere)
        #expect(unlink(scene.copy) == 0)
        #expect(symlink(elsewhere, scene.copy) == 0)
        let one = try scene.path(1)
        #expect(unlink(one) == 0)
        #expect(symlink(elsewhere, one) == 0)
        try scene.expect([.contentDamaged, .copyDamaged])
        #expect(try scene.fixture.reader() == "two")
        // An undamaged directory with the same content behind a link is foreign too.
        let moved = scene.fixture.directory.path + "/moved"
        #expect(rename(scene.generations, moved) == 0)
        #expect(symlink(moved, scene.generations) == 0)
        #expect(try scene.examine().map(\.kind) == [.stray, .contentMissing])
        #expect(try scene.examine(repairs: true).allSatisfy { $0.isRepaired })
        #expect(try scene.examine().isEmpty)
        #expect(
            try LinuxFileSystem().list(moved).map(\.name) == [
                String(try scene.path(2).split(separator: "/").last ?? "")
            ])
        #expect(String(decoding: try TemporaryDirectory.read(elsewhere), as: UTF8.self) == "theirs")
        #expect(try scene.fixture.commit("three", to: scene.destination).generation.number == 3)
    }

    @Test("finds a copy that is not a link to its generation, and a missing generation that readers still have")
    func hardLinks() throws {
        let scene = try Examined()
        #expect(unlink(scene.copy) == 0)
        try TemporaryDirectory.write(Array("two".utf8), to: scene.copy)
        try scene.expect([.copyDuplicated])
        #expect(try LinuxFileSystem().status(scene.copy)?.links == 2)
        let two = try scene.path(2)
        #expect(unlink(two) == 0)
        try scene.expect([.contentMissing])
        #expect(try LinuxFileSystem().status(two)?.links == 2)
        #expect(unlink(try scene.path(1)) == 0)
        try scene.expect([.contentMissing])
        #expect(try scene.cache.generations.history("jwks").map(\.isKept) == [true, false])
        // A start finds nothing to repair.
        #expect(try scene.cache.current("jwks")?.number == 2)
    }

    @Test("finds foreign files, but not the files of a commit in progress")
    func strays() throws {
        let scene = try Examined()
        let directory = scene.fixture.directory.cache
        let pending = try scene.cache.begin(scene.destination)
        try pending.write(Array("three".utf8))
        for name in ["/current/.new-900", "/generations/jwks/.new-901", "/current/mine.txt", "/generations/jwks/notes"]
        {
            try TemporaryDirectory.write([1], to: directory + name)
        }
        let digest = try ContentDigest(of: [1]).description
        try TemporaryDirectory.write([1], to: directory + "/generations/jwks/9-\(digest)")
        #expect(mkdir(directory + "/current/directory", 0o755) == 0)
        try TemporaryDirectory.write([1], to: directory + "/generations/file")
        // An old name of the copy, as a changed `cache.file` leaves it.
        #expect(link(scene.copy, directory + "/current/old.json") == 0)
        let found = try scene.examine()
        let counts = Dictionary(grouping: found, by: \.kind).mapValues(\.count)
        #expect(counts == [.unfinished: 2, .stray: 5, .contentUnknown: 1])
        #expect(try scene.examine(repairs: true).allSatisfy { $0.isRepaired })
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.names("current") == ["jwks.json"])
        #expect(try scene.fixture.names("strays").count == 4)
        #expect(try pending.commit(at: WallTime(seconds: 9)).generation.number == 3)
        #expect(try scene.fixture.reader() == "three")
    }

    @Test("finds damaged rejected content, and earlier rejected content")
    func rejectedContent() throws {
        let scene = try Examined()
        let pending = try scene.cache.begin(scene.destination)
        try pending.write(Array("bad".utf8))
        guard case .kept(let rejected) = try pending.reject(because: "shrunken", at: WallTime(seconds: 5)) else {
            Issue.record("the content was not kept")
            return
        }
        try scene.expect([])
        try TemporaryDirectory.write([], to: scene.generations + "/rejected-\(try ContentDigest(of: [1]))")
        try scene.expect([.unfinished])
        try damage(scene.generations + "/rejected-\(rejected.digest)")
        try scene.expect([.rejectedDamaged])
        #expect(try scene.cache.rejections.candidate("jwks", at: WallTime(seconds: 6)) == nil)
        #expect(try scene.fixture.names("generations/jwks").count == 2)
    }

    @Test("reports a damaged pinned generation, which no other content replaces")
    func pinned() throws {
        let scene = try Examined()
        _ = try scene.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        try damage(scene.copy)
        #expect(try scene.examine().map(\.kind) == [.contentDamaged, .copyDamaged])
        let repaired = try scene.examine(repairs: true)
        #expect(repaired.filter { !$0.isRepaired }.map(\.kind) == [.pinLost])
        #expect(try scene.fixture.readerIfAny() == nil)
        #expect(try scene.examine().map(\.kind) == [.pinLost])
        _ = try scene.cache.generations.unpin("jwks")
        #expect(try scene.examine().isEmpty)
    }

    @Test("does not report files that a commit changes meanwhile")
    func beside() throws {
        let files = FailingFileSystem()
        let scene = try Examined(fileSystem: files)
        defer { files.disarm() }
        let commits = Mutex(0)
        var narrow = scene.destination
        narrow.keep = 1
        let (fixture, destination) = (scene.fixture, narrow)
        // One commit before each call of the examination, but not before calls of the commits.
        files.arm(.nothing) {
            let number = commits.withLock { commits -> Int? in
                guard commits < 3, commits % 2 == 0 else { return nil }
                commits += 1
                return commits
            }
            guard let number else { return }
            #expect(throws: Never.self) { try fixture.commit("new \(number)", to: destination) }
            commits.withLock { $0 += 1 }
        }
        #expect(try scene.cache.checker.examine("jwks").findings.isEmpty)
        #expect(commits.withLock { $0 } == 4)
    }

    @Test("continues if a generation is removed between the check of its file and the opening of it")
    func goneBeforeOpened() throws {
        let files = FailingFileSystem()
        let scene = try Examined(fileSystem: files)
        defer { files.disarm() }
        var narrow = scene.destination
        narrow.keep = 1
        let (fixture, destination) = (scene.fixture, narrow)
        let commits = Mutex(0)
        files.arm(.nothing) { [weak files] in
            guard files?.calls.last == "open", commits.withLock({ $0 == 0 }) else { return }
            commits.withLock { $0 += 1 }
            #expect(throws: Never.self) { try fixture.commit("three", to: destination) }
        }
        #expect(try scene.cache.checker.examine("jwks").findings.isEmpty)
        #expect(commits.withLock { $0 } == 1)
    }

    @Test("ends between two generations if the caller requests it")
    func ended() throws {
        let scene = try Examined()
        try damage(scene.copy)
        let examination = try scene.cache.checker.examine("jwks", repairs: true) { true }
        #expect(examination == CacheExamination())
        #expect(try scene.fixture.reader() == "?wo")
    }

    @Test("lists a limited number of errors of a pipeline and counts the others")
    func limit() throws {
        let scene = try Examined()
        for number in 1...CacheLimits.findings + 2 {
            try TemporaryDirectory.write([], to: scene.generations + "/.new-\(1000 + number)")
        }
        let examination = try scene.cache.checker.examine("jwks")
        #expect(examination.findings.count == CacheLimits.findings && examination.unnamed == 2)
        // A repair lists the errors that it has repaired; the next one repairs the others.
        let repaired = try scene.cache.checker.examine("jwks", repairs: true)
        #expect(repaired.findings.count == CacheLimits.findings && repaired.unnamed == 2)
        #expect(try scene.cache.checker.examine("jwks", repairs: true).unnamed == 0)
    }

    @Test("reports why a repair failed, and continues")
    func rejected() throws {
        let files = FailingFileSystem()
        let scene = try Examined(fileSystem: files)
        try damage(try scene.path(1))
        #expect(unlink(scene.copy) == 0)
        var refusals = 0
        for call in 1... {
            files.arm(.fail(at: call, errno: EIO))
            let examination = try? scene.cache.checker.examine("jwks", repairs: true)
            if files.calls.count < call { break }
            files.arm(.nothing)
            for finding in examination?.findings ?? [] where !finding.isRepaired && finding.detail != nil {
                refusals += 1
            }
            // In any case the next examination finds no error.
            _ = try scene.cache.checker.examine("jwks", repairs: true)
            #expect(try scene.examine().isEmpty, "call \(call)")
            try fixtureAgain(scene)
        }
        #expect(refusals > 0)
    }

    /// Damages the cache again.
    private func fixtureAgain(_ scene: Examined) throws {
        try scene.fixture.commit("one \(try scene.cache.generations.history("jwks").count)", to: scene.destination)
        try scene.fixture.commit("two \(try scene.cache.generations.history("jwks").count)", to: scene.destination)
        let names = try scene.fixture.names("generations/jwks").compactMap { StoredContent(name: $0) }
        let numbers = names.map(\.number).sorted()
        try damage(try scene.path(Int(try #require(numbers.first))))
        #expect(unlink(scene.copy) == 0)
    }
}

@Suite("An examination of the index")
struct IndexExaminationTests {
    /// A cache that no process has open.
    private func closed() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory.forCache()
        _ = try Examined(directory)
        return directory
    }

    private func open(_ directory: TemporaryDirectory, repairs: Bool = false) throws -> (
        cache: LocalCache?, examination: CacheExamination
    ) {
        try LocalCache.openToExamine(
            cacheDirectory: directory.cache, stateDirectory: directory.state, repairs: repairs)
    }

    /// Removes rows below an index of SQLite.
    private func damageIndex(_ directory: TemporaryDirectory) throws {
        let path = directory.state + "/index.sqlite"
        var bytes = try TemporaryDirectory.read(path)
        // The pages after that of the schema.
        for offset in 8192..<bytes.count { bytes[offset] = 0xAA }
        try TemporaryDirectory.write(bytes, to: path)
    }

    @Test("without a running daemon changes nothing, and takes the daemon's lock")
    func closedCache() throws {
        let directory = try closed()
        do {
            let (cache, examination) = try open(directory)
            #expect(examination.findings.isEmpty)
            #expect(try cache?.checker.examine("jwks").generations == 2)
            #expect(throws: CacheError.stateLocked(directory: directory.state, holder: getpid())) {
                try open(directory)
            }
        }
        // Errors that a start would repair are not repaired.
        try TemporaryDirectory.write([], to: directory.cache + "/generations/jwks/.new-1")
        #expect(unlink(directory.cache + "/current/jwks.json") == 0)
        let (cache, _) = try open(directory)
        #expect(try cache?.checker.examine("jwks").findings.map(\.kind) == [.unfinished, .copyMissing])
        #expect(try LinuxFileSystem().status(directory.cache + "/current/jwks.json") == nil)
    }

    @Test("finds damage, and a repair makes the index again from the files")
    func damagedIndex() throws {
        let directory = try closed()
        try damageIndex(directory)
        let before = try TemporaryDirectory.read(directory.state + "/index.sqlite")
        do {
            let (cache, examination) = try open(directory)
            #expect(cache == nil)
            #expect(examination.findings.map(\.kind) == [.indexDamaged])
            #expect(examination.findings.first?.isRepaired == false)
            #expect(try TemporaryDirectory.read(directory.state + "/index.sqlite") == before)
        }
        let (cache, examination) = try open(directory, repairs: true)
        #expect(examination.findings.map(\.isRepaired) == [true])
        #expect(try cache?.current("jwks")?.number == 2)
        #expect(try cache?.checker.examineIndex().findings.isEmpty == true)
        #expect(try cache?.checker.examine("jwks").findings.isEmpty == true)
        #expect(try LinuxFileSystem().status(directory.state + "/index.sqlite.damaged") != nil)
    }

    @Test("finds damage while the daemon runs, and leaves the repair to a start")
    func living() throws {
        let scene = try Examined()
        #expect(try scene.cache.checker.examineIndex().findings.isEmpty)
        try scene.cache.records.record(
            RunRecord(
                pipeline: "jwks", number: 1, causes: "timer", started: WallTime(seconds: 1),
                ended: WallTime(seconds: 2), outcome: .changed))
        do {
            let database = try SQLiteDatabase(path: scene.fixture.directory.state + "/index.sqlite", busyTimeout: 1000)
            try database.execute("INSERT INTO requests VALUES (77, 1, 1, 1)")
        }
        let findings = try scene.cache.checker.examineIndex().findings
        #expect(findings.map(\.kind) == [.indexDamaged])
        #expect(findings.first?.detail == "a row of requests refers to a missing row of pipelines")
    }

    @Test("finds damage on the disk although the daemon's connection, which no other may use, has the pages in memory")
    func exclusive() throws {
        let scene = try Examined()
        let context = scene.cache.context
        try context.withIndex { (index) throws(SQLiteError) in
            try index.database.execute("PRAGMA locking_mode = EXCLUSIVE")
        }
        context.index.checkpoint()
        #expect(try scene.cache.checker.examineIndex(isExclusive: true).findings.isEmpty)
        let path = scene.fixture.directory.state + "/index.sqlite"
        let size = try TemporaryDirectory.read(path).count
        let descriptor = Glibc.open(path, O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let noise = [UInt8](repeating: 0xAA, count: size - 8_192)
        try #require(pwrite(descriptor, noise, noise.count, 8_192) == noise.count)
        #expect(try scene.cache.checker.examineIndex(isExclusive: true).findings.map(\.kind) == [.indexDamaged])
        // The finding repairs nothing.
        #expect(context.index.epoch == 0)
    }

    @Test(
        "reports an index that was removed or replaced, and neither makes a file nor changes the log",
        arguments: [true, false], [true, false])
    func moved(isExclusive: Bool, isReplaced: Bool) throws {
        let scene = try Examined()
        let context = scene.cache.context
        let path = scene.fixture.directory.state + "/index.sqlite"
        let content = try TemporaryDirectory.read(path)
        try #require(rename(path, path + ".moved") == 0)
        if isReplaced { try TemporaryDirectory.write(content, to: path) }
        let findings = try scene.cache.checker.examineIndex(isExclusive: isExclusive).findings
        #expect(findings.map(\.kind) == [.indexDamaged])
        #expect(
            findings.first?.detail == "the file was removed or replaced, and the daemon still uses the previous one")
        #expect((access(path, F_OK) == 0) == isReplaced)
        #expect(try scene.cache.checker.examineIndex(isExclusive: isExclusive).findings.count == 1)
        #expect(try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.all().isEmpty } == false)
        #expect(context.index.epoch == 0)
    }

    @Test("moves and removes nothing if the index is replaced between any two calls of an examination that repairs")
    func replacedMeanwhile() throws {
        var (number, isOver) = (0, false)
        while !isOver {
            number += 1
            let files = FailingFileSystem()
            let scene = try Examined(fileSystem: files)
            try scene.fixture.commitSet("old")
            let (index, checker) = (scene.cache.context.index, scene.cache.checker)
            let last = number
            files.arm(.nothing) { [weak files] in
                guard files?.calls.count == last, index.epoch == 0 else { return }
                try? index.access { (_) throws(SQLiteError) in throw SQLiteError.damage("noise", during: "a test") }
            }
            var found = try checker.examineStrays(repairs: true).findings
            for name in try checker.examinable() { found += try checker.examine(name, repairs: true).findings }
            files.disarm()
            #expect(found.isEmpty, "call \(number)")
            #expect(try scene.fixture.reader() == "two", "call \(number)")
            #expect(try scene.fixture.seen == .of("old"), "call \(number)")
            #expect(try scene.fixture.names("generations/jwks").count == 2, "call \(number)")
            isOver = index.epoch == 0
        }
        #expect(number > 20)
    }

    @Test("reports a missing index, and the database of another program")
    func none() throws {
        let directory = try TemporaryDirectory.forCache()
        let path = directory.state + "/index.sqlite"
        #expect(throws: CacheError.nothingKept(path)) { try open(directory) }
        #expect(try LinuxFileSystem().list(directory.path).isEmpty)
        try #require(mkdir(directory.state, 0o700) == 0)
        do {
            let database = try SQLiteDatabase(path: path, busyTimeout: 1000)
            try database.execute("CREATE TABLE theirs (x)")
        }
        #expect(try open(directory).examination.findings.first?.detail == "it is another program's database")
    }
}

@Suite("An examination of a pipeline that was assigned another file")
struct FormerFilesTests {
    @Test("accepts the old files, which readers see until the next commit", arguments: [true, false])
    func kept(becomesOne: Bool) throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("old")
        if becomesOne {
            try fixture.cache.ownership.assign([("shop", "catalogue")])
        } else {
            try fixture.cache.ownership.assign([("shop", "other.stamp")], sets: ["shop"])
        }
        let cache = fixture.cache
        let found =
            try cache.checker.examineStrays(repairs: true).findings
            + cache.checker.examine("shop", repairs: true).findings
        #expect(found.map(\.kind) == [])
        #expect(try fixture.seen == .of("old"))
        #expect(try fixture.reader("catalogue.stamp") == SeenSet.bundle("old"))
    }

    @Test("ends in the middle of a long file if nobody waits for it any more")
    func abandoned() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one")
        let name = try #require(try fixture.names("generations/jwks").first)
        let path = fixture.directory.cache + "/generations/jwks/" + name
        try #require(chmod(path, 0o644) == 0 && truncate(path, 300 << 30) == 0)
        files.arm(.nothing)
        let findings = try fixture.cache.checker.examine("jwks") { files.calls.filter { $0 == "read" }.count >= 3 }
            .findings
        #expect(findings.isEmpty)
        #expect(files.calls.filter { $0 == "read" }.count == 3)
    }

    @Test("a file that the service may not read is damaged, and the examination and the next commit go on")
    func unreadable() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one")
        files.arm(.failEach(call: "open", errno: EACCES))
        #expect(try fixture.cache.checker.examine("jwks").findings.map(\.kind) == [.contentDamaged, .copyDamaged])
        // The copy looks changed, so its content is compared.
        try #require(chmod(fixture.directory.cache + "/current/jwks.json", 0o600) == 0)
        #expect(try fixture.cache.current("jwks") == nil)
        try fixture.commit("two", at: 2000)
        files.disarm()
        #expect(try fixture.reader() == "two")
    }
}
