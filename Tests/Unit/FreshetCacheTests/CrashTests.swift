import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// One kind of commit, with the state before it.
struct CommitScene: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The earlier commits, in this order.
    var before: [String]
    /// The content of the commit under test.
    var new: String
    /// Changes of the directories before the commit under test.
    var prepare: @Sendable (CacheFixture) throws -> Void = { _ in }
    /// The operation under test.
    var kind = CommitKind.commit

    enum CommitKind {
        case commit
        /// The previous generation becomes the current one: `new` is its content.
        case rollback
        /// The rejected content becomes the current generation: `new` is its content.
        case acceptance
    }

    static let all = [
        CommitScene(testDescription: "the first", before: [], new: "new"),
        CommitScene(testDescription: "a changed one", before: ["old"], new: "new"),
        CommitScene(testDescription: "one that prunes", before: ["older", "old"], new: "new"),
        CommitScene(
            testDescription: "a commit that frees space", before: ["older", "old"], new: "new",
            prepare: { fixture in
                try reject("bad")(fixture)
                // Enough for the copy and the new content only.
                fixture.cache.context.quota.withLock { $0.limit = 6 }
            }),
        CommitScene(testDescription: "an unchanged one", before: ["older", "old"], new: "old"),
        CommitScene(testDescription: "one that returns to earlier content", before: ["new", "old"], new: "new"),
        CommitScene(testDescription: "one after the published file was removed", before: ["older", "old"], new: "old") {
            #expect(unlink($0.directory.cache + "/current/jwks.json") == 0)
        },
        CommitScene(testDescription: "one after the cache directory was removed", before: ["old"], new: "new") {
            TemporaryDirectory.remove($0.directory.cache)
        },
        CommitScene(testDescription: "a rollback", before: ["older", "old"], new: "older", kind: .rollback),
        CommitScene(
            testDescription: "an acceptance", before: ["older", "old"], new: "new", prepare: reject("new"),
            kind: .acceptance),
    ]

    private static func reject(_ text: String) -> @Sendable (CacheFixture) throws -> Void {
        { fixture in
            let pending = try fixture.cache.begin(.jwks)
            try pending.write(Array(text.utf8))
            _ = try pending.reject(because: "a check", validators: [.tag(text)], at: WallTime(seconds: 50))
        }
    }

    /// A cache with the earlier commits.
    func fixture(_ fileSystem: FailingFileSystem) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: fileSystem)
        for (offset, text) in before.enumerated() {
            try fixture.commit(text, validators: [.tag(text)], at: Int64(offset))
        }
        try prepare(fixture)
        return fixture
    }

    func commit(_ fixture: CacheFixture) throws {
        switch kind {
        case .commit: try fixture.commit(new, validators: [.tag(new)], at: 100)
        case .rollback: _ = try fixture.cache.generations.rollBack(.jwks, to: nil)
        case .acceptance: _ = try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 100))
        }
    }

    /// The tag in requests while readers see this content: the tag of the last content of the origin.
    func tag(_ text: String) -> String { kind == .rollback ? before.last ?? text : text }

    /// Checks that readers and index agree on a complete generation, old or new, and that no unfinished file is left.
    func checkAgreement(_ fixture: CacheFixture, _ situation: Comment) throws {
        let system = LinuxFileSystem()
        let path = fixture.directory.cache + "/current/jwks.json"
        let text = try fixture.readerIfAny()
        let current = try fixture.cache.current("jwks")
        #expect((text == nil) == (current == nil), situation)
        if let text, let current {
            #expect(text == before.last || text == new, situation)
            #expect(try system.digest(of: path) == current.digest, situation)
            #expect(current.size == Int64(text.utf8.count), situation)
        }
        #expect(try fixture.names("current") == (text == nil ? [] : ["jwks.json"]), situation)
        // Rejected content is kept until it is the copy.
        let names = try fixture.names("generations/jwks").filter { CacheLayout.rejectedDigest($0) == nil }
        #expect(names.allSatisfy { StoredContent(name: $0) != nil }, situation)
        for name in names {
            let stored = try #require(StoredContent(name: name))
            let content = fixture.directory.cache + "/generations/jwks/" + name
            #expect(try system.digest(of: content) == stored.digest, situation)
        }
    }

    /// Checks that the cache works as if nothing had happened.
    func checkUse(_ fixture: CacheFixture, _ situation: Comment) throws {
        let number = try fixture.cache.current("jwks")?.number ?? 0
        let next = try fixture.commit("next", validators: [.tag("next")], at: 200).generation
        #expect(next.number > number, situation)
        #expect(try fixture.reader() == "next", situation)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("next"), situation)
        let names = try fixture.names("generations/jwks").filter { CacheLayout.rejectedDigest($0) == nil }
        #expect(names.count <= CacheDestination.jwks.keep, situation)
    }
}

@Suite("After a crash")
struct CrashTests {
    private func points(_ scene: CommitScene) throws -> [CrashPoint] {
        try CrashPoint.all(of: scene.commit, on: scene.fixture)
    }

    /// The content that readers see before any repair.
    private func readers(_ point: CrashPoint) throws -> String? {
        let path = point.directory.cache + "/current/jwks.json"
        guard try LinuxFileSystem().status(path) != nil else { return nil }
        return String(decoding: try TemporaryDirectory.read(path), as: UTF8.self)
    }

    @Test(
        "of the process at any point of a commit, readers and index agree, and requests stay conditional",
        arguments: CommitScene.all)
    func processCrash(scene: CommitScene) throws {
        let points = try points(scene)
        #expect(points.count > 2)
        let hadFile = try readers(try #require(points.first)) != nil
        var seen: Set<String> = []
        for point in points {
            let situation = point.situation
            let untouched = try readers(point)
            if hadFile { #expect(untouched != nil, situation) }
            if let untouched { #expect(untouched == scene.before.last || untouched == scene.new, situation) }
            let text: String
            do {
                let fixture = try CacheFixture(point.directory)
                try scene.checkAgreement(fixture, situation)
                if let current = try fixture.cache.current("jwks") {
                    text = try fixture.reader()
                    #expect(current.path.hasSuffix("/current/jwks.json"))
                    // "kill -9 at any moment, and the first request is conditional".
                    #expect(
                        try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks")
                            == .tag(scene.tag(text)),
                        situation)
                    #expect(current.isBehind == ((scene.kind == .rollback) && text == scene.new), situation)
                } else {
                    text = ""
                }
                seen.insert(text)
            }
            do {
                let again = try CacheFixture(point.directory)
                #expect(again.report == RecoveryReport(index: .opened), situation)
                try scene.checkUse(again, situation)
            }
        }
        #expect(seen.contains(scene.new))
    }

    @Test(
        "of the machine, which also loses the newest transactions, readers and index agree",
        arguments: CommitScene.all)
    func powerCut(scene: CommitScene) throws {
        try CrashPoint.eachPowerCut(try points(scene)) { directory, situation in
            do {
                let fixture = try CacheFixture(directory)
                try scene.checkAgreement(fixture, situation)
            }
            let again = try CacheFixture(directory)
            #expect(again.report == RecoveryReport(index: .opened), situation)
            try scene.checkUse(again, situation)
        }
    }

    @Test("that loses the index, content and its owner are found again", arguments: CommitScene.all)
    func lostIndex(scene: CommitScene) throws {
        for point in try points(scene) {
            TemporaryDirectory.remove(point.directory.state)
            let situation = point.situation
            let fixture = try CacheFixture(point.directory)
            #expect(fixture.report.index == .made)
            try scene.checkAgreement(fixture, situation)
            try scene.checkUse(fixture, situation)
        }
    }
}

@Suite("When a system call fails")
struct ValidationErrorTests {
    @Test("during a commit, readers and index agree immediately and after a start", arguments: CommitScene.all)
    func anyCall(scene: CommitScene) throws {
        // Each call fails with two errors; all scenes together use all errors: each call with all errors would take
        // three times as long.
        let errors = [EIO, ENOSPC, EDQUOT, EMFILE, EROFS, ENOENT]
        let first = try #require(CommitScene.all.firstIndex { $0.testDescription == scene.testDescription })
        for shift in [0, errors.count / 2] {
            try enumerate(scene) { call in
                .fail(at: call, errno: errors[(first + shift + call) % errors.count])
            }
        }
    }

    @Test("and all later calls fail too, a start repairs the remains", arguments: CommitScene.all)
    func allCalls(scene: CommitScene) throws {
        try enumerate(scene) { FailingFileSystem.Plan.stop(at: $0) }
    }

    /// Runs the commit once for each of its calls.
    private func enumerate(_ scene: CommitScene, _ plan: (Int) -> FailingFileSystem.Plan) throws {
        try CrashPoint.eachCall(of: scene.commit, on: scene.fixture, plan) { fixture, situation in
            // Read first: the next access repairs a pipeline that could not be repaired immediately.
            let current = try fixture.cache.current("jwks")
            let text = try fixture.readerIfAny()
            #expect((text == nil) == (current == nil), situation)
            if let text, let current {
                #expect(
                    try LinuxFileSystem().digest(of: fixture.directory.cache + "/current/jwks.json")
                        == current.digest, situation)
                #expect(text == scene.before.last || text == scene.new, situation)
            }
            let reopened = try CacheFixture(try fixture.directory.copied())
            try scene.checkAgreement(reopened, situation)
            try scene.checkUse(reopened, situation)
        }
    }

    @Test("in one commit, another candidate of the same pipeline is not affected")
    func otherCandidate() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("old")
        let other = try fixture.cache.begin(.jwks)
        try other.write(Array("other".utf8))
        let failing = try fixture.cache.begin(.jwks)
        try failing.write(Array("failing".utf8))
        files.arm(.fail(at: 5, errno: EIO))
        #expect(throws: CacheError.self) { try failing.commit(at: WallTime(seconds: 2)) }
        #expect(files.calls[4] == "link")
        files.arm(.nothing)
        #expect(try fixture.reader() == "old")
        #expect(try other.commit(at: WallTime(seconds: 3)).generation.number == 2)
        #expect(try fixture.reader() == "other")
    }

    @Test("because the disk is full, the error says so and the copy stays")
    func noSpace() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("old")
        let pending = try fixture.cache.begin(.jwks)
        files.arm(.fail(at: 1, errno: ENOSPC))
        let error = #expect(throws: CacheError.self) { try pending.write([1]) }
        guard case .noSpace = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(files.calls.first == "write")
        #expect(throws: CacheError.finished) { try pending.commit(at: WallTime(seconds: 2)) }
        #expect(try fixture.reader() == "old")
        #expect(try fixture.names("generations/jwks").count == 1)
    }

    @Test("because no inodes are left, the error says so, but not for content that finds no space")
    func noInodes() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("old")
        files.arm(.fail(at: 1, errno: ENOSPC), hasInodes: false)
        let error = #expect(throws: CacheError.self) { try fixture.cache.begin(.jwks) }
        #expect(files.calls.first == "create")
        guard case .noInodes = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        let pending = try fixture.cache.begin(.jwks)
        files.arm(.fail(at: 1, errno: ENOSPC), hasInodes: false)
        let other = #expect(throws: CacheError.self) { try pending.write([1]) }
        guard case .noSpace = other else {
            Issue.record("\(String(describing: other))")
            return
        }
    }

    @Test("because a quota is used up, the error does not name the free bytes")
    func quota() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        let pending = try fixture.cache.begin(.jwks)
        files.arm(.fail(at: 1, errno: EDQUOT))
        let error = #expect(throws: CacheError.self) { try pending.write([1]) }
        guard case .quotaUsed = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(
        "because another program removes files, the error distinguishes a file and the cache directory",
        arguments: [false, true])
    func removed(_ isDirectory: Bool) throws {
        let fixture = try CacheFixture()
        try fixture.commit("old")
        let pending = try fixture.cache.begin(.jwks)
        try pending.write(Array("new".utf8))
        if isDirectory {
            TemporaryDirectory.remove(fixture.directory.cache)
        } else {
            try #require(unlink(pending.file) == 0)
        }
        let error = try #require(throws: CacheError.self) { try pending.commit(at: WallTime(seconds: 2)) }
        let text = "\(error)"
        #expect(text.contains("No such file or directory"), "\(text)")
        #expect(text.contains("the cache directory was removed") == isDirectory, "\(text)")
        #expect(text.contains("another program removed a file of the cache") == !isDirectory, "\(text)")
    }

    @Test("the error of a missing file of the state directory does not say that the cache directory was removed")
    func missingState() {
        let error = CacheError.fileSystem(SystemCallError(call: "open", path: "/var/lib/freshet/lock", errno: ENOENT))
        #expect(error.description == "open /var/lib/freshet/lock: No such file or directory")
    }

    @Test("a commit makes only the necessary system calls")
    func calls() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("old")
        files.arm(.nothing)
        try fixture.commit("new")
        #expect(
            files.calls == [
                "create", "write", "lstat", "fchmod", "fsync", "rename", "link", "rename", "lstat", "opendir", "fsync",
                "opendir", "fsync", "lstat",
            ])
    }
}
