import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

/// An operation on a copy that is withdrawn or published, with the state before it. "old" and "new" were committed.
struct WithdrawalScene: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var isWithdrawn = true
    var deed: @Sendable (CacheFixture, CacheDestination) throws -> Void
    /// The content that readers may find after a start; nil: no file.
    var after: [String?]
    var isSet = false

    private static let deeds = [
        WithdrawalScene(
            testDescription: "the withdrawal", isWithdrawn: false,
            deed: { _ = try $0.cache.withdrawals.withdraw($1.pipeline, at: WallTime(seconds: 100)) },
            after: ["new", nil]),
        WithdrawalScene(
            testDescription: "the return", deed: { _ = try $0.cache.withdrawals.putBack($1) }, after: [nil, "new"]),
        WithdrawalScene(
            testDescription: "the same content", deed: { try commit("new", to: $1, in: $0) }, after: [nil, "new"]),
        WithdrawalScene(
            testDescription: "other content", deed: { try commit("newer", to: $1, in: $0) }, after: [nil, "newer"]),
        WithdrawalScene(
            testDescription: "a rollback", deed: { _ = try $0.cache.generations.rollBack($1, to: nil) },
            after: [nil, "old"]),
    ]

    static let all =
        deeds
        + deeds.map { scene in
            var several = scene
            several.isSet = true
            several.testDescription += ", of several files"
            return several
        }

    var destination: CacheDestination { isSet ? .catalogue : .jwks }

    private static func commit(_ text: String, to destination: CacheDestination, in fixture: CacheFixture) throws {
        let content = destination.isSet ? SeenSet.bundle(text) : text
        try fixture.commit(content, to: destination, validators: [.tag(text)], at: 200)
    }

    func fixture(_ fileSystem: FailingFileSystem) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: fileSystem)
        for text in ["old", "new"] { try Self.commit(text, to: destination, in: fixture) }
        if isWithdrawn { _ = try fixture.cache.withdrawals.withdraw(destination.pipeline, at: WallTime(seconds: 100)) }
        return fixture
    }

    /// The content that readers find, whatever is in the index; nil: no file.
    func found(in directory: TemporaryDirectory) throws -> String? {
        let path = directory.cache + "/current/" + destination.file
        let text =
            try LinuxFileSystem().status(path) == nil
            ? nil : String(decoding: try TemporaryDirectory.read(path), as: UTF8.self)
        guard isSet else { return text }
        return ["old", "new", "newer"].first { SeenSet.bundle($0) == text }
    }

    /// Checks that readers, the index and the generations agree, and that no unfinished file is left.
    ///
    /// - Parameter mayForget: the index may have lost validators too.
    func check(_ fixture: CacheFixture, mayForget: Bool = false, _ situation: Comment) throws -> String? {
        let found = try found(in: fixture.directory)
        #expect(after.contains(found), "\(String(describing: found)), \(situation)")
        let current = try fixture.cache.current(destination.pipeline)
        #expect((found == nil) == (current == nil), situation)
        if isSet { try fixture.checkSet(after, situation) }
        let errors =
            try fixture.cache.checker.examine(destination.pipeline).findings
            + fixture.cache.checker.examineStrays().findings
        #expect(errors.isEmpty, "\(errors), \(situation)")
        // Withdrawn content is kept, and its requests are conditional.
        let memory = try fixture.cache.records.memory(destination.pipeline, key: "k")
        #expect((memory?.generation?.withdrawnSince == nil) == (found != nil), situation)
        #expect(memory?.generation != nil, situation)
        let validators = try fixture.cache.validators(destination.pipeline, boundTo: "https://example.com/jwks")
        #expect(mayForget || validators != nil, situation)
        return found
    }

    /// Checks that the cache works as if nothing had happened.
    func checkUse(_ fixture: CacheFixture, _ situation: Comment) throws {
        if try fixture.cache.current(destination.pipeline) == nil {
            #expect(try fixture.cache.withdrawals.putBack(destination) != nil, situation)
        }
        #expect(try found(in: fixture.directory) != nil, situation)
        #expect(
            try fixture.cache.withdrawals.withdraw(destination.pipeline, at: WallTime(seconds: 300)).kept != nil,
            situation)
        #expect(try found(in: fixture.directory) == nil, situation)
        try Self.commit("next", to: destination, in: fixture)
        #expect(try fixture.cache.current(destination.pipeline) != nil, situation)
        let errors = try fixture.cache.checker.examine(destination.pipeline).findings
        #expect(errors.isEmpty, "\(errors), \(situation)")
    }
}

@Suite("A withdrawal or its end, after a crash")
struct WithdrawalCrashTests {
    private func points(_ scene: WithdrawalScene) throws -> [CrashPoint] {
        try CrashPoint.all(of: { try scene.deed($0, scene.destination) }, on: scene.fixture)
    }

    @Test(
        "of the process at any point, does not restore removed copies at a start, and readers and index agree",
        arguments: WithdrawalScene.all)
    func processCrash(scene: WithdrawalScene) throws {
        let points = try points(scene)
        #expect(points.count > 2)
        var seen: Set<String?> = []
        for point in points {
            let situation = point.situation
            let untouched = try scene.found(in: point.directory)
            #expect(scene.after.contains(untouched), situation)
            do {
                let fixture = try CacheFixture(point.directory)
                let found = try scene.check(fixture, situation)
                // For the end of a withdrawal, the index may already have the new state.
                if !scene.isWithdrawn, untouched == nil { #expect(found == nil, situation) }
                seen.insert(found)
            }
            let again = try CacheFixture(point.directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
        #expect(seen == Set(scene.after), "it was done before the last point, and not before the first")
    }

    @Test(
        "of the machine, which also loses the newest transactions, leaves readers and index in agreement",
        arguments: WithdrawalScene.all.filter { !$0.isSet })
    func powerCut(scene: WithdrawalScene) throws {
        var tolerant = scene
        // Durable transactions are lost too, which no power cut does: then the index follows from its earlier state.
        tolerant.after = [nil, "old", "new", "newer"]
        try CrashPoint.eachPowerCut(try points(scene)) { directory, situation in
            do { _ = try tolerant.check(try CacheFixture(directory), mayForget: true, situation) }
            let again = try CacheFixture(directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
    }

    @Test(
        "with a failure of any one call, leaves them in agreement immediately and after a start",
        arguments: WithdrawalScene.all)
    func anyCall(scene: WithdrawalScene) throws {
        for errno in [EIO, EROFS] { try enumerate(scene) { FailingFileSystem.Plan.fail(at: $0, errno: errno) } }
    }

    @Test("with a failure of one call and all later calls, is repaired by a start", arguments: WithdrawalScene.all)
    func allCalls(scene: WithdrawalScene) throws {
        try enumerate(scene) { FailingFileSystem.Plan.stop(at: $0) }
    }

    /// Runs the operation once for each of its calls.
    private func enumerate(_ scene: WithdrawalScene, _ plan: (Int) -> FailingFileSystem.Plan) throws {
        let deed = { (fixture: CacheFixture) in try scene.deed(fixture, scene.destination) }
        try CrashPoint.eachCall(of: deed, on: scene.fixture, plan) { fixture, situation in
            // Read first: the next access repairs a state that could not be repaired immediately.
            let current = try fixture.cache.current(scene.destination.pipeline)
            let found = try scene.found(in: fixture.directory)
            #expect((current == nil) == (found == nil), situation)
            #expect(scene.after.contains(found), situation)
            let reopened = try CacheFixture(try fixture.directory.copied())
            _ = try scene.check(reopened, situation)
            try scene.checkUse(reopened, situation)
        }
    }
}
