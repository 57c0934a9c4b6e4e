import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

/// One kind of commit of several files, with the state before it.
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
            deed: { fixture, _ in _ = try fixture.cache.generations.rollBack(.catalogue, to: nil) }),
        SetScene(
            testDescription: "an acceptance", before: ["older", "old"], new: "new",
            prepare: { try $0.refuseSet("new") },
            deed: { fixture, _ in _ = try fixture.cache.rejections.accept(.catalogue, at: WallTime(seconds: 100)) }),
    ]

    /// The scenes with different remains: each earlier index with each state of the files needs many starts.
    static let some = all.filter {
        ["the first", "one that prunes", "one after the link was removed", "a rollback"].contains($0.testDescription)
    }

    func fixture(_ fileSystem: FailingFileSystem) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: fileSystem)
        for (offset, text) in before.enumerated() { try fixture.commitSet(text, at: Int64(offset)) }
        try prepare(fixture)
        return fixture
    }

    func check(_ fixture: CacheFixture, _ situation: Comment) throws {
        try fixture.checkSet([before.last, new, nil], situation)
    }

    /// Checks that the cache works as if nothing had happened.
    func checkUse(_ fixture: CacheFixture, _ situation: Comment) throws {
        try fixture.commitSet("next", at: 200)
        try fixture.checkSet(["next"], situation)
        #expect(try fixture.names("sets/shop").count <= CacheDestination.catalogue.keep + 1, situation)
    }
}

@Suite("Several files, after a crash")
struct SetCrashTests {
    private func points(_ scene: SetScene) throws -> [CrashPoint] {
        try CrashPoint.all(of: { try scene.deed($0, scene.new) }, on: scene.fixture)
    }

    @Test(
        "of the process at any point, readers see a complete set, and link, stamp and index agree",
        arguments: SetScene.all)
    func processCrash(scene: SetScene) throws {
        let points = try points(scene)
        #expect(points.count > 2)
        let path = "/current/catalogue"
        let hadSet = try SeenSet(at: try #require(points.first).directory.cache + path) != nil
        let allowed = [scene.before.last.map(SeenSet.of), SeenSet.of(scene.new)]
        var seen: Set<SeenSet?> = []
        for point in points {
            let situation = point.situation
            let untouched = try SeenSet(at: point.directory.cache + path)
            if hadSet || untouched != nil { #expect(allowed.contains(untouched), situation) }
            do {
                let fixture = try CacheFixture(point.directory)
                try scene.check(fixture, situation)
                seen.insert(try fixture.seen)
                if try fixture.cache.current("shop") != nil {
                    // "kill -9 at any moment, and the first request is conditional".
                    #expect(
                        try fixture.cache.validators("shop", boundTo: "https://example.com/jwks") != nil, situation)
                }
            }
            let again = try CacheFixture(point.directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
        #expect(seen.contains(SeenSet.of(scene.new)))
    }

    @Test(
        "of the machine, which also loses the newest transactions, link, stamp and index agree",
        arguments: SetScene.some)
    func powerCut(scene: SetScene) throws {
        try CrashPoint.eachPowerCut(try points(scene)) { directory, situation in
            do { try scene.check(try CacheFixture(directory), situation) }
            let again = try CacheFixture(directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
    }

    @Test("that loses the index, are found again", arguments: SetScene.all)
    func lostIndex(scene: SetScene) throws {
        for point in try points(scene) {
            TemporaryDirectory.remove(point.directory.state)
            do {
                let fixture = try CacheFixture(point.directory)
                try fixture.cache.ownership.assign([("shop", "catalogue.stamp")], sets: ["shop"])
            }
            let fixture = try CacheFixture(point.directory)
            try scene.check(fixture, point.situation)
            try scene.checkUse(fixture, point.situation)
        }
    }

    @Test("with a failure of any one call, agree immediately and after a start", arguments: SetScene.all)
    func anyCall(scene: SetScene) throws {
        try enumerate(scene) { FailingFileSystem.Plan.fail(at: $0, errno: EIO) }
    }

    @Test("with no space, no descriptor or a missing path at any one call, agree too")
    func otherErrors() throws {
        let scene = try #require(SetScene.some.first { $0.testDescription == "one that prunes" })
        for errno in [ENOSPC, EMFILE, ENOENT] {
            try enumerate(scene) { FailingFileSystem.Plan.fail(at: $0, errno: errno) }
        }
    }

    @Test("with a failure of one call and all later calls, are repaired by a start", arguments: SetScene.all)
    func allCalls(scene: SetScene) throws {
        try enumerate(scene) { FailingFileSystem.Plan.stop(at: $0) }
    }

    /// Runs the commit once for each of its calls.
    private func enumerate(_ scene: SetScene, _ plan: (Int) -> FailingFileSystem.Plan) throws {
        let deed = { (fixture: CacheFixture) in try scene.deed(fixture, scene.new) }
        try CrashPoint.eachCall(of: deed, on: scene.fixture, plan) { fixture, situation in
            // Read first: the next access repairs a pipeline that could not be repaired immediately.
            let current = try fixture.cache.current("shop")
            let seen = try fixture.seen
            if current != nil {
                #expect(
                    [scene.before.last.map(SeenSet.of), SeenSet.of(scene.new)].contains(seen),
                    "\(String(describing: seen)), \(situation)")
            }
            let reopened = try CacheFixture(try fixture.directory.copied())
            try scene.check(reopened, situation)
            try scene.checkUse(reopened, situation)
        }
    }
}
