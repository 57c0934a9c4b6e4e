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

    /// Everything, as the daemon does it.
    func examine(mends: Bool = false) throws -> [CacheFinding] {
        try cache.examineIndex().findings + cache.examineStrays(mends: mends).findings
            + cache.examinable().flatMap { try cache.examine($0, mends: mends).findings }
    }

    /// Finds exactly these, mends them all, and finds nothing more.
    func expect(_ kinds: [CacheFinding.Kind], left: [CacheFinding.Kind] = []) throws {
        let found = try examine()
        #expect(found.map(\.kind) == kinds)
        #expect(found.allSatisfy { !$0.isMended })
        let mended = try examine(mends: true)
        #expect(mended.filter { !$0.isMended }.map(\.kind) == left)
        #expect(mended.filter(\.isMended).map(\.kind) == kinds.filter { !left.contains($0) })
        #expect(try examine().map(\.kind) == left)
    }

    func stray(_ name: String) throws -> [String] {
        try fixture.names("strays").filter { $0.hasSuffix("-" + name) }
    }
}

/// Writes over a file without making another of it.
private func damage(_ path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, "?", 1, 0) == 1)
}

@Suite("An examination of the cache")
struct ExaminationTests {
    @Test("finds nothing where all is as it was committed, and counts what it has read")
    func sound() throws {
        let scene = try Examined()
        try scene.expect([])
        let examination = try scene.cache.examine("jwks")
        #expect(examination.generations == 2 && examination.bytes == 6 && examination.offered == nil)
        #expect(try scene.cache.examine("unknown") == CacheExamination())
        #expect(try scene.cache.examinable() == ["jwks"])
        #expect(try scene.fixture.names("") == ["current", "generations"])
    }

    @Test("finds an older generation that is damaged, which a repair removes")
    func olderGeneration() throws {
        let scene = try Examined()
        try damage(try scene.path(1))
        try scene.expect([.contentDamaged])
        #expect(try scene.fixture.names("generations/jwks").count == 1)
        #expect(try scene.fixture.reader() == "two")
        #expect(throws: CacheError.notKept(1, kept: [2])) { try scene.cache.rollBack(scene.destination, to: 1) }
        #expect(try scene.cache.validators("jwks", url: "https://example.com/jwks") == .tag("two"))
    }

    @Test("finds a copy that is damaged: a repair puts the newest whole generation there, and the next request is new")
    func copy() throws {
        let scene = try Examined()
        try damage(scene.copy)
        #expect(try scene.examine().map(\.kind) == [.contentDamaged, .copyDamaged])
        let mended = try scene.cache.examine("jwks", mends: true)
        #expect(mended.findings.allSatisfy { $0.isMended })
        #expect(mended.offered?.number == 1 && (mended.offered?.turn ?? 0) > 0)
        #expect(try scene.fixture.reader() == "one")
        #expect(try scene.cache.validators("jwks", url: "https://example.com/jwks") == nil)
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.names("").contains("strays") == false)
        #expect(try scene.fixture.commit("two", to: scene.destination).generation.number == 3)
    }

    @Test("that finds nothing whole has a repair take it all away, so that it is fetched anew")
    func allDamaged() throws {
        let scene = try Examined()
        try damage(try scene.path(1))
        try damage(scene.copy)
        #expect(try scene.examine(mends: true).allSatisfy { $0.isMended })
        #expect(try scene.fixture.readerIfAny() == nil)
        #expect(try scene.cache.current("jwks") == nil)
        #expect(try scene.fixture.names("generations/jwks").isEmpty)
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.commit("two", to: scene.destination).generation.number == 3)
    }

    @Test("finds a copy that is gone, and another file in its place, which a repair moves aside as it is")
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

    @Test("follows no link, wherever it stands, and writes through none")
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
        // A whole directory of the same content behind a link is not ours either.
        let moved = scene.fixture.directory.path + "/moved"
        #expect(rename(scene.generations, moved) == 0)
        #expect(symlink(moved, scene.generations) == 0)
        #expect(try scene.examine().map(\.kind) == [.stray, .contentMissing])
        #expect(try scene.examine(mends: true).allSatisfy { $0.isMended })
        #expect(try scene.examine().isEmpty)
        #expect(
            try LinuxFileSystem().list(moved).map(\.name) == [
                String(try scene.path(2).split(separator: "/").last ?? "")
            ])
        #expect(String(decoding: try TemporaryDirectory.read(elsewhere), as: UTF8.self) == "theirs")
        #expect(try scene.fixture.commit("three", to: scene.destination).generation.number == 3)
    }

    @Test("finds a copy that is no link to its generation, and a generation that is gone while readers have it")
    func hardLinks() throws {
        let scene = try Examined()
        #expect(unlink(scene.copy) == 0)
        try TemporaryDirectory.write(Array("two".utf8), to: scene.copy)
        try scene.expect([.copyApart])
        #expect(try LinuxFileSystem().status(scene.copy)?.links == 2)
        let two = try scene.path(2)
        #expect(unlink(two) == 0)
        try scene.expect([.contentMissing])
        #expect(try LinuxFileSystem().status(two)?.links == 2)
        #expect(unlink(try scene.path(1)) == 0)
        try scene.expect([.contentMissing])
        #expect(try scene.cache.history("jwks").map(\.isKept) == [true, false])
        // A start finds nothing to be mended.
        #expect(try scene.cache.current("jwks")?.number == 2)
    }

    @Test("finds what does not belong there, and spares what a commit is at work with")
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
        // An old name of the copy, as a changed cache.file leaves one.
        #expect(link(scene.copy, directory + "/current/old.json") == 0)
        let found = try scene.examine()
        let counts = Dictionary(grouping: found, by: \.kind).mapValues(\.count)
        #expect(counts == [.unfinished: 2, .stray: 5, .contentUnknown: 1])
        #expect(try scene.examine(mends: true).allSatisfy { $0.isMended })
        #expect(try scene.examine().isEmpty)
        #expect(try scene.fixture.names("current") == ["jwks.json"])
        #expect(try scene.fixture.names("strays").count == 4)
        #expect(try pending.commit(at: WallTime(seconds: 9)).generation.number == 3)
        #expect(try scene.fixture.reader() == "three")
    }

    @Test("finds what a check refused, if it is damaged, and what was refused before it")
    func refusedContent() throws {
        let scene = try Examined()
        let pending = try scene.cache.begin(scene.destination)
        try pending.write(Array("bad".utf8))
        guard case .kept(let refused) = try pending.setAside(because: "shrunken", at: WallTime(seconds: 5)) else {
            Issue.record("not kept aside")
            return
        }
        try scene.expect([])
        try TemporaryDirectory.write([], to: scene.generations + "/refused-\(try ContentDigest(of: [1]))")
        try scene.expect([.unfinished])
        try damage(scene.generations + "/refused-\(refused.digest)")
        try scene.expect([.refusedDamaged])
        #expect(try scene.cache.refused("jwks", at: WallTime(seconds: 6)) == nil)
        #expect(try scene.fixture.names("generations/jwks").count == 2)
    }

    @Test("of a pinned generation that is damaged says that nothing takes its place")
    func pinned() throws {
        let scene = try Examined()
        _ = try scene.cache.pin("jwks", at: WallTime(seconds: 5))
        try damage(scene.copy)
        #expect(try scene.examine().map(\.kind) == [.contentDamaged, .copyDamaged])
        let mended = try scene.examine(mends: true)
        #expect(mended.filter { !$0.isMended }.map(\.kind) == [.pinLost])
        #expect(try scene.fixture.readerIfAny() == nil)
        #expect(try scene.examine().map(\.kind) == [.pinLost])
        _ = try scene.cache.unpin("jwks")
        #expect(try scene.examine().isEmpty)
    }

    @Test("takes nothing for a fault that a commit changes meanwhile")
    func beside() throws {
        let files = FaultyFileSystem()
        let scene = try Examined(fileSystem: files)
        defer { files.disarm() }
        let commits = Mutex(0)
        var narrow = scene.destination
        narrow.keep = 1
        let (fixture, destination) = (scene.fixture, narrow)
        // One before each call of the examination but the commits' own.
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
        #expect(try scene.cache.examine("jwks").findings.isEmpty)
        #expect(commits.withLock { $0 } == 4)
    }

    @Test("is not ended by a generation that goes between the look at its file and the opening of it")
    func goneBeforeOpened() throws {
        let files = FaultyFileSystem()
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
        #expect(try scene.cache.examine("jwks").findings.isEmpty)
        #expect(commits.withLock { $0 } == 1)
    }

    @Test("ends between two generations when it is told to")
    func ended() throws {
        let scene = try Examined()
        try damage(scene.copy)
        let examination = try scene.cache.examine("jwks", mends: true) { true }
        #expect(examination == CacheExamination())
        #expect(try scene.fixture.reader() == "?wo")
    }

    @Test("names so many faults of a pipeline and counts the others")
    func limit() throws {
        let scene = try Examined()
        for number in 1...CacheLimits.findings + 2 {
            try TemporaryDirectory.write([], to: scene.generations + "/.new-\(1000 + number)")
        }
        let examination = try scene.cache.examine("jwks")
        #expect(examination.findings.count == CacheLimits.findings && examination.unnamed == 2)
        // A repair names those that it has mended; the next one mends the others.
        let mended = try scene.cache.examine("jwks", mends: true)
        #expect(mended.findings.count == CacheLimits.findings && mended.unnamed == 2)
        #expect(try scene.cache.examine("jwks", mends: true).unnamed == 0)
    }

    @Test("where the system refuses a repair says why, and goes on")
    func refused() throws {
        let files = FaultyFileSystem()
        let scene = try Examined(fileSystem: files)
        try damage(try scene.path(1))
        #expect(unlink(scene.copy) == 0)
        var refusals = 0
        for call in 1... {
            files.arm(.fail(at: call, errno: EIO))
            let examination = try? scene.cache.examine("jwks", mends: true)
            if files.calls.count < call { break }
            files.arm(.nothing)
            for finding in examination?.findings ?? [] where !finding.isMended && finding.detail != nil {
                refusals += 1
            }
            // Whatever came of it, all is whole after the next.
            _ = try scene.cache.examine("jwks", mends: true)
            #expect(try scene.examine().isEmpty, "call \(call)")
            try fixtureAgain(scene)
        }
        #expect(refusals > 0)
    }

    /// Damages it anew.
    private func fixtureAgain(_ scene: Examined) throws {
        try scene.fixture.commit("one \(try scene.cache.history("jwks").count)", to: scene.destination)
        try scene.fixture.commit("two \(try scene.cache.history("jwks").count)", to: scene.destination)
        let names = try scene.fixture.names("generations/jwks").compactMap { StoredContent(name: $0) }
        let numbers = names.map(\.number).sorted()
        try damage(try scene.path(Int(try #require(numbers.first))))
        #expect(unlink(scene.copy) == 0)
    }
}

@Suite("An examination of the index")
struct IndexExaminationTests {
    /// A closed cache.
    private func closed() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory.forCache()
        _ = try Examined(directory)
        return directory
    }

    private func open(_ directory: TemporaryDirectory, mends: Bool = false) throws -> (
        cache: LocalCache?, examination: CacheExamination
    ) {
        try LocalCache.openToExamine(
            cacheDirectory: directory.cache, stateDirectory: directory.state, mends: mends)
    }

    /// Takes rows away from under an index of SQLite's.
    private func damageIndex(_ directory: TemporaryDirectory) throws {
        let path = directory.state + "/index.sqlite"
        var bytes = try TemporaryDirectory.read(path)
        // The pages after the schema's.
        for offset in 8192..<bytes.count { bytes[offset] = 0xAA }
        try TemporaryDirectory.write(bytes, to: path)
    }

    @Test("of a daemon that does not run changes nothing, and needs its lock")
    func closedCache() throws {
        let directory = try closed()
        do {
            let (cache, examination) = try open(directory)
            #expect(examination.findings.isEmpty)
            #expect(try cache?.examine("jwks").generations == 2)
            #expect(throws: CacheError.stateLocked(directory: directory.state, holder: getpid())) {
                try open(directory)
            }
        }
        // What a start would mend stays as it is.
        try TemporaryDirectory.write([], to: directory.cache + "/generations/jwks/.new-1")
        #expect(unlink(directory.cache + "/current/jwks.json") == 0)
        let (cache, _) = try open(directory)
        #expect(try cache?.examine("jwks").findings.map(\.kind) == [.unfinished, .copyMissing])
        #expect(try LinuxFileSystem().status(directory.cache + "/current/jwks.json") == nil)
    }

    @Test("finds damage, and a repair makes it anew from the files")
    func damagedIndex() throws {
        let directory = try closed()
        try damageIndex(directory)
        let before = try TemporaryDirectory.read(directory.state + "/index.sqlite")
        do {
            let (cache, examination) = try open(directory)
            #expect(cache == nil)
            #expect(examination.findings.map(\.kind) == [.indexDamaged])
            #expect(examination.findings.first?.isMended == false)
            #expect(try TemporaryDirectory.read(directory.state + "/index.sqlite") == before)
        }
        let (cache, examination) = try open(directory, mends: true)
        #expect(examination.findings.map(\.isMended) == [true])
        #expect(try cache?.current("jwks")?.number == 2)
        #expect(try cache?.examineIndex().findings.isEmpty == true)
        #expect(try cache?.examine("jwks").findings.isEmpty == true)
        #expect(try LinuxFileSystem().status(directory.state + "/index.sqlite.damaged") != nil)
    }

    @Test("finds damage beside a daemon that runs, and leaves it to a start")
    func living() throws {
        let scene = try Examined()
        #expect(try scene.cache.examineIndex().findings.isEmpty)
        try scene.cache.record(
            RunRecord(
                number: 1, pipeline: "jwks", causes: "timer", started: WallTime(seconds: 1),
                finished: WallTime(seconds: 2), outcome: .changed))
        do {
            var database = try SQLiteDatabase(path: scene.fixture.directory.state + "/index.sqlite", busyTimeout: 1000)
            try database.execute("INSERT INTO requests VALUES (77, 1, 1, 1)")
        }
        let findings = try scene.cache.examineIndex().findings
        #expect(findings.map(\.kind) == [.indexDamaged])
        #expect(findings.first?.detail == "a row of requests belongs to one of pipelines that is not there")
    }

    @Test("says where there is none, and of another program's that it is that")
    func none() throws {
        let directory = try TemporaryDirectory.forCache()
        let path = directory.state + "/index.sqlite"
        #expect(throws: CacheError.nothingKept(path)) { try open(directory) }
        #expect(try LinuxFileSystem().list(directory.path).isEmpty)
        try #require(mkdir(directory.state, 0o700) == 0)
        do {
            var database = try SQLiteDatabase(path: path, busyTimeout: 1000)
            try database.execute("CREATE TABLE theirs (x)")
        }
        #expect(try open(directory).examination.findings.first?.detail == "it is another program's database")
    }
}

@Suite("What an examination says of files whose pipeline has others by now")
struct FormerFilesTests {
    @Test("readers keep them until the next commit", arguments: [true, false])
    func kept(becomesOne: Bool) throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("old")
        if becomesOne {
            try fixture.cache.assign([("shop", "catalogue")])
        } else {
            try fixture.cache.assign([("shop", "other.stamp")], sets: ["shop"])
        }
        let cache = fixture.cache
        let found = try cache.examineStrays(mends: true).findings + cache.examine("shop", mends: true).findings
        #expect(found.map(\.kind) == [])
        #expect(try fixture.seen == .of("old"))
        #expect(try fixture.reader("catalogue.stamp") == SeenSet.bundle("old"))
    }
}
