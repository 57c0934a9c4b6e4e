import Glibc
import Synchronization
import Testing

@testable import FreshetCache

/// One kind of commit of several files, seen from just before it.
struct SetScene: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var before: [String]
    var new: String
    var prepare: @Sendable (CacheFixture) throws -> Void = { _ in }
    var deed: @Sendable (CacheFixture, String) throws -> Void = { try $0.commitSet($1, at: 100) }

    static let all = [
        SetScene(testDescription: "the first", before: [], new: "new"),
        SetScene(testDescription: "a changed one", before: ["old"], new: "new"),
        SetScene(testDescription: "one that prunes", before: ["oldest", "older", "old"], new: "new"),
        SetScene(testDescription: "an unchanged one", before: ["older", "old"], new: "old"),
        SetScene(testDescription: "one that returns to earlier content", before: ["new", "old"], new: "new"),
        SetScene(testDescription: "one after the link was removed", before: ["older", "old"], new: "new") {
            #expect(unlink($0.directory.cache + "/current/catalogue") == 0)
        },
        SetScene(testDescription: "one after all directories were removed", before: ["older", "old"], new: "new") {
            TemporaryDirectory.remove($0.directory.cache + "/sets")
        },
        SetScene(testDescription: "one after the cache directory was removed", before: ["old"], new: "new") {
            TemporaryDirectory.remove($0.directory.cache)
        },
        SetScene(
            testDescription: "a rollback", before: ["older", "old"], new: "older",
            deed: { fixture, _ in _ = try fixture.cache.rollBack(.catalogue, to: nil) }),
        SetScene(
            testDescription: "an acceptance", before: ["older", "old"], new: "new",
            prepare: { try $0.refuseSet("new") },
            deed: { fixture, _ in _ = try fixture.cache.accept(.catalogue, at: WallTime(seconds: 100)) }),
    ]

    /// Those that differ by what they leave to be read: each earlier index with each state of the files is many starts.
    static let some = all.filter {
        ["the first", "one that prunes", "one after the link was removed", "a rollback"].contains($0.testDescription)
    }

    func fixture(_ fileSystem: FaultyFileSystem) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: fileSystem)
        for (offset, text) in before.enumerated() { try fixture.commitSet(text, at: Int64(offset)) }
        try prepare(fixture)
        return fixture
    }

    func check(_ fixture: CacheFixture, _ situation: Comment) throws {
        try fixture.checkSet([before.last, new, nil], situation)
    }

    /// The cache can be used as if nothing had happened.
    func checkUse(_ fixture: CacheFixture, _ situation: Comment) throws {
        try fixture.commitSet("next", at: 200)
        try fixture.checkSet(["next"], situation)
        #expect(try fixture.names("sets/shop").count <= CacheDestination.catalogue.keep + 1, situation)
    }
}

@Suite("Several files, after a crash")
struct SetCrashTests {
    private struct Snapshot: Sendable {
        var directory: TemporaryDirectory
        var point: Int
    }

    private static func copy(_ cache: TemporaryDirectory, _ state: TemporaryDirectory) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory()
        var links: [UInt64: String] = [:]
        if try LinuxFileSystem().status(cache.cache) != nil {
            try TemporaryDirectory.copy(cache.cache, to: copy.cache, links: &links)
        }
        try TemporaryDirectory.copy(state.state, to: copy.state, links: &links)
        return copy
    }

    /// Everything before and after each system call of the commit.
    private func snapshots(_ scene: SetScene) throws -> [Snapshot] {
        let files = FaultyFileSystem()
        let fixture = try scene.fixture(files)
        let taken = Mutex<(snapshots: [Result<Snapshot, any Error>], state: [String])>(([], []))
        let source = fixture.directory
        files.arm(.nothing) {
            taken.withLock { taken in
                // Many calls only look, and after one is before the next.
                let state = Self.state(of: source.path)
                if state == taken.state { return }
                taken.state = state
                let point = taken.snapshots.count
                taken.snapshots.append(Result { Snapshot(directory: try Self.copy(source, source), point: point) })
            }
        }
        try scene.deed(fixture, scene.new)
        files.arm(.nothing)
        return try taken.withLock { try $0.snapshots.map { try $0.get() } }
    }

    /// What differs where something has been done in a directory.
    private static func state(of path: String) -> [String] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        let own = "\(path) \(status.st_ino) \(status.st_size) \(status.st_ctim)"
        guard status.st_mode & S_IFMT == S_IFDIR else { return [own] }
        return ((try? LinuxFileSystem().list(path)) ?? []).reduce(into: [own]) { $0 += state(of: path + "/" + $1.name) }
    }

    @Test(
        "of the process at any point, readers had and have a whole set, and link, stamp and index agree",
        arguments: SetScene.all)
    func processCrash(scene: SetScene) throws {
        let snapshots = try snapshots(scene)
        #expect(snapshots.count > 2)
        let path = "/current/catalogue"
        let hadSet = try SeenSet(at: try #require(snapshots.first).directory.cache + path) != nil
        let allowed = [scene.before.last.map(SeenSet.of), SeenSet.of(scene.new)]
        var seen: Set<SeenSet?> = []
        for snapshot in snapshots {
            let situation: Comment = "point \(snapshot.point)"
            let untouched = try SeenSet(at: snapshot.directory.cache + path)
            if hadSet || untouched != nil { #expect(allowed.contains(untouched), situation) }
            do {
                let fixture = try CacheFixture(snapshot.directory)
                try scene.check(fixture, situation)
                seen.insert(try fixture.seen)
                if try fixture.cache.current("shop") != nil {
                    // "kill -9 at any moment, and the first request is conditional".
                    #expect(
                        try fixture.cache.validators("shop", url: "https://example.com/jwks") != nil, situation)
                }
            }
            let again = try CacheFixture(snapshot.directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
        #expect(seen.contains(SeenSet.of(scene.new)))
    }

    @Test(
        "of the machine, which also loses the index's newest transactions, they agree as well",
        arguments: SetScene.some)
    func powerCut(scene: SetScene) throws {
        let snapshots = try snapshots(scene)
        for files in snapshots {
            var tried: [[UInt8]] = []
            for index in snapshots[...files.point] {
                let log = (try? TemporaryDirectory.read(index.directory.state + "/index.sqlite-wal")) ?? []
                if tried.contains(log) { continue }
                tried.append(log)
                let directory = try Self.copy(files.directory, index.directory)
                let situation: Comment = "files of point \(files.point), index of point \(index.point)"
                do { try scene.check(try CacheFixture(directory), situation) }
                let again = try CacheFixture(directory)
                #expect(again.report == RecoveryReport(index: .opened), situation)
                try scene.checkUse(again, situation)
            }
        }
    }

    @Test("and without any index, they are found again", arguments: SetScene.all)
    func lostIndex(scene: SetScene) throws {
        for snapshot in try snapshots(scene) {
            TemporaryDirectory.remove(snapshot.directory.state)
            do {
                let fixture = try CacheFixture(snapshot.directory)
                try fixture.cache.assign([("shop", "catalogue.stamp")], sets: ["shop"])
            }
            let fixture = try CacheFixture(snapshot.directory)
            try scene.check(fixture, "point \(snapshot.point)")
            try scene.checkUse(fixture, "point \(snapshot.point)")
        }
    }

    @Test("of which any one call fails, they agree at once, and after a start", arguments: SetScene.all)
    func anyCall(scene: SetScene) throws {
        try enumerate(scene) { FaultyFileSystem.Plan.fail(at: $0, errno: EIO) }
    }

    @Test("of which any one call finds no room, no descriptor or nothing at its path, they agree too")
    func otherFaults() throws {
        let scene = try #require(SetScene.some.first { $0.testDescription == "one that prunes" })
        for errno in [ENOSPC, EMFILE, ENOENT] {
            try enumerate(scene) { FaultyFileSystem.Plan.fail(at: $0, errno: errno) }
        }
    }

    @Test("of which one call and all after it fail, a start mends what is left", arguments: SetScene.all)
    func allCalls(scene: SetScene) throws {
        try enumerate(scene) { FaultyFileSystem.Plan.stop(at: $0) }
    }

    /// One run for each call of the commit.
    private func enumerate(_ scene: SetScene, _ plan: (Int) -> FaultyFileSystem.Plan) throws {
        var number = 1
        var failures = 0
        while true {
            let files = FaultyFileSystem()
            let fixture = try scene.fixture(files)
            files.arm(plan(number))
            do {
                try scene.deed(fixture, scene.new)
            } catch is CacheError {
                failures += 1
            }
            let calls = files.calls
            files.arm(.nothing)
            if calls.count < number { break }
            let situation: Comment = "call \(number), \(calls[number - 1])"
            // Asking first: a pipeline that could not be mended at once is mended by the next who asks.
            let current = try fixture.cache.current("shop")
            let seen = try fixture.seen
            if current != nil {
                #expect(
                    [scene.before.last.map(SeenSet.of), SeenSet.of(scene.new)].contains(seen),
                    "\(String(describing: seen)), \(situation)")
            }
            do {
                let copy = try Self.copy(fixture.directory, fixture.directory)
                let reopened = try CacheFixture(copy)
                try scene.check(reopened, situation)
                try scene.checkUse(reopened, situation)
            }
            number += 1
        }
        #expect(failures > 3)
    }
}
