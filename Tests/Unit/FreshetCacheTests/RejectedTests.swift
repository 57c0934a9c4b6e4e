import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

private let url = "https://example.com/jwks"

@Suite("Rejected content")
struct RejectedTests {
    private let fixture: CacheFixture

    init() throws {
        fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("1")], at: 1)
    }

    @discardableResult
    private func reject(
        _ text: String, because reason: String = "too short", tag: String? = "2", at seconds: Int64 = 10
    ) throws -> RejectionOutcome {
        try fixture.reject(text, because: reason, tag: tag, at: seconds)
    }

    private func rejected(at seconds: Int64 = 20) throws -> RejectedCandidate? {
        try fixture.cache.rejections.candidate("jwks", at: WallTime(seconds: seconds))
    }

    private func names() throws -> [String] {
        try fixture.names("generations/jwks").map { String($0.prefix { $0 != "-" }) }
    }

    private let myself = FileReader(user: geteuid(), groups: [getegid()])

    @Test("is kept in the place of earlier rejected content; readers, validators and numbers stay")
    func keptAside() throws {
        guard case .kept(let first) = try reject("x") else { throw TestFailure() }
        #expect(first.reason == "too short" && first.size == 1)
        try reject("yy", because: "worse", at: 11)
        let rejected = try #require(try rejected())
        #expect(rejected.reason == "worse" && rejected.rejectedAt == WallTime(seconds: 11))
        #expect(try names() == ["1", "rejected"])
        #expect(try fixture.reader() == "one")
        #expect(try fixture.cache.validators("jwks", boundTo: url)?.entityTag == "1")
        let content = try #require(
            try fixture.cache.rejections.open(of: "jwks", for: myself, at: WallTime(seconds: 20)))
        #expect(try content.read(100) == Array("yy".utf8))
        try fixture.commit("two", at: 12)
        #expect(try fixture.cache.current("jwks")?.number == 2)
        #expect(try self.rejected()?.reason == "worse")
    }

    @Test("leaves no file if the index cannot record it, and stays if the index had it before")
    func unrecorded() throws {
        func refuse(_ refuses: Bool) throws {
            try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
                try index.database.execute("PRAGMA query_only = \(refuses ? "ON" : "OFF")")
            }
        }
        try refuse(true)
        #expect(throws: CacheError.self) { try reject("x") }
        #expect(try names() == ["1"])
        try refuse(false)
        try reject("x")
        try refuse(true)
        #expect(throws: CacheError.self) { try reject("x", at: 11) }
        #expect(throws: CacheError.self) { try reject("yy", at: 12) }
        #expect(try names() == ["1", "rejected"])
        let content = try fixture.cache.rejections.open(of: "jwks", for: myself, at: WallTime(seconds: 20))
        #expect(try content?.read(100) == Array("x".utf8))
    }

    @Test("is found by its digest, until its week is over or its file is missing")
    func keeps() throws {
        guard case .kept(let first) = try reject("x"), case .kept(let second) = try reject("yy") else {
            throw TestFailure()
        }
        func keeps(_ candidate: RejectedCandidate, at now: WallTime = WallTime(seconds: 20)) throws -> Bool {
            try fixture.cache.rejections.keeps("jwks", candidate.digest, at: now)
        }
        #expect(try keeps(second))
        #expect(try !keeps(first))
        #expect(try !keeps(second, at: second.keptUntil))
        let file = try #require(try fixture.names("generations/jwks").first { $0.hasPrefix("rejected-") })
        try #require(unlink("\(fixture.directory.cache)/generations/jwks/\(file)") == 0)
        #expect(try !keeps(second))
    }

    @Test("is not kept if it is the copy: only the check is new")
    func isCopy() throws {
        guard case .isCopy(let digest) = try reject("one") else {
            Issue.record("the content is kept")
            return
        }
        #expect(try fixture.cache.isCopy("jwks", digest))
        #expect(try !fixture.cache.isCopy("jwks", ContentDigest(of: Array("x".utf8))))
        #expect(try rejected() == nil)
        #expect(try names() == ["1"])
    }

    @Test("becomes the copy when it is accepted: a new generation with its validators and time of rejection")
    func accepted() throws {
        try reject("x")
        let outcome = try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        #expect(try fixture.cache.generations.history("jwks").first?.causes == "accept")
        #expect(outcome.generation.number == 2 && outcome.replaced == 1)
        #expect(try fixture.reader() == "x")
        #expect(try names() == ["1", "2"])
        #expect(try rejected() == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: url)?.entityTag == "2")
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 10))
        #expect(try LinuxFileSystem().status(outcome.generation.path)?.links == 2)
        // The same content passes again as long as it is kept.
        guard case .accepted(.unchanged(let generation)) = try reject("x", at: 40) else { throw TestFailure() }
        #expect(generation.number == 2)
        try fixture.commit("three", at: 50)
        guard case .accepted(.changed(let again)) = try reject("x", at: 60) else { throw TestFailure() }
        #expect(again.number == 4)
        #expect(try fixture.reader() == "x")
    }

    @Test(
        "that is older than the last check does not change its time when accepted, and stays if it comes again")
    func acceptedLate() throws {
        try reject("x", at: 10)
        try fixture.commit("two", validators: [.tag("3")], at: 20)
        let outcome = try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        #expect(outcome.generation.number == 3 && outcome.generation.isBehind)
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 20))
        #expect(try fixture.commit("two", validators: [.tag("3")], at: 40).generation.number == 3)
        #expect(try fixture.reader() == "x")
        #expect(try fixture.commit("three", at: 50).generation.number == 4)
    }

    @Test("cannot be accepted after it has passed a check")
    func passedSince() throws {
        try reject("x")
        try fixture.commit("x", at: 20)
        #expect(try rejected() == nil)
        #expect(try names() == ["1", "2"])
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        }
    }

    @Test("that was accepted is rejected again when no generation of it is kept")
    func acceptedLongAgo() throws {
        try reject("x")
        _ = try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        for text in ["two", "three", "four"] { try fixture.commit(text, at: 40) }
        guard case .kept = try reject("x", at: 60) else { throw TestFailure() }
        #expect(try fixture.reader() == "four")
    }

    @Test("is deleted from the index at a start that does not find its file")
    func fileGone() throws {
        try reject("x")
        #expect(
            unlink(fixture.directory.cache + "/generations/jwks/" + (try fixture.names("generations/jwks")[1])) == 0)
        let restarted = try restarted()
        #expect(try restarted.cache.rejections.candidate("jwks", at: WallTime(seconds: 20)) == nil)
        #expect(try restarted.cache.records.memory("jwks", key: "k")?.rejected == nil)
    }

    @Test("is accepted only with the expected digest; a pin and missing content are errors")
    func notAccepted() throws {
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        }
        guard case .kept(let rejected) = try reject("x") else { throw TestFailure() }
        #expect(throws: CacheError.otherCandidate(rejected.digest)) {
            try fixture.cache.rejections.accept(.jwks, "0000", at: WallTime(seconds: 30))
        }
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 20))
        #expect(throws: CacheError.pinned(1)) { try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30)) }
        _ = try fixture.cache.generations.unpin("jwks")
        let prefix = String(rejected.digest.description.prefix(4)).uppercased()
        #expect(try fixture.cache.rejections.accept(.jwks, prefix, at: WallTime(seconds: 30)).generation.number == 2)
    }

    @Test("is kept for a week, and the next run after that removes its file")
    func week() throws {
        try reject("x", at: 10)
        let week: Int64 = 7 * 86_400
        #expect(try rejected(at: 10 + week - 1) != nil)
        #expect(try rejected(at: 10 + week) == nil)
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 10 + week))
        }
        #expect(try names() == ["1", "rejected"])
        try fixture.cache.records.record(
            RunRecord(
                pipeline: "jwks", number: 3, causes: "timer", started: WallTime(seconds: 10 + week),
                ended: WallTime(seconds: 10 + week), outcome: .unchanged, error: nil, generation: 1))
        #expect(try names() == ["1"])
    }

    @Test("is not a finding of an examination; earlier rejected content is")
    func examination() throws {
        try reject("x")
        let directory = fixture.directory.cache + "/generations/jwks/"
        let digest = try ContentDigest(of: Array("old".utf8))
        #expect(try fixture.cache.checker.examine("jwks").findings.isEmpty)
        try LinuxFileSystem().link(
            directory + "rejected-\(try ContentDigest(of: Array("x".utf8)))", to: directory + "rejected-\(digest)")
        #expect(try fixture.cache.checker.examine("jwks").findings.map(\.kind) == [.unfinished])
        _ = try fixture.cache.checker.examine("jwks", repairs: true)
        #expect(try names() == ["1", "rejected"])
        #expect(try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30)).generation.number == 2)
        #expect(try fixture.cache.checker.examine("jwks").findings.isEmpty)
    }

    @Test("that was damaged since cannot be accepted")
    func damaged() throws {
        guard case .kept(let rejected) = try reject("x") else { throw TestFailure() }
        let path = fixture.directory.cache + "/generations/jwks/rejected-\(rejected.digest)"
        let descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        try #require(descriptor >= 0)
        close(descriptor)
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 30))
        }
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.rejections.open(of: "jwks", for: myself, at: WallTime(seconds: 20))
        }
        #expect(try fixture.reader() == "one")
    }

    @Test("survives a restart; files that are missing in the index are removed")
    func restart() throws {
        try reject("x")
        let directory = fixture.directory.cache + "/generations/jwks/"
        let digest = try ContentDigest(of: Array("old".utf8))
        try LinuxFileSystem().link(
            directory + (try fixture.names("generations/jwks")[1]), to: directory + "rejected-\(digest)")
        let restarted = try restarted()
        #expect(try restarted.cache.rejections.candidate("jwks", at: WallTime(seconds: 20))?.reason == "too short")
        #expect(try restarted.cache.records.memory("jwks", key: "k")?.rejected?.reason == "too short")
        #expect(try restarted.cache.records.memories(key: "k").states["jwks"]?.rejected?.reason == "too short")
        #expect(try restarted.names("generations/jwks").count == 2)
        #expect(try restarted.cache.rejections.accept(.jwks, at: WallTime(seconds: 30)).generation.number == 2)
    }

    /// A restart with a copy of the files on disk.
    private func restarted() throws -> CacheFixture {
        let copy = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(fixture.directory.cache, to: copy.cache, links: &links)
        try TemporaryDirectory.copy(fixture.directory.state, to: copy.state, links: &links)
        return try CacheFixture(copy)
    }
}

private struct TestFailure: Error {
    @Test("accepted content is not rejected content any more after a kill between its publication and the index")
    func killedAcceptance() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one")
        try fixture.reject("two")
        let (context, path) = (fixture.cache.context, fixture.directory.cache + "/current/jwks.json")
        let before = try LinuxFileSystem().status(path)?.identity.inode
        files.arm(.nothing) {
            guard let now = try? LinuxFileSystem().status(path)?.identity.inode, now != before else { return }
            _ = try? context.withIndex { (index) throws(SQLiteError) in
                try index.database.execute("PRAGMA query_only = ON")
            }
        }
        #expect(throws: CacheError.self) {
            try fixture.cache.rejections.accept(.jwks, nil, at: WallTime(seconds: 1002))
        }
        files.disarm()
        let killed = try CacheFixture(try fixture.directory.copied())
        #expect(try killed.reader() == "two")
        #expect(
            try killed.cache.context.withIndex { (index) throws(SQLiteError) in try index.rejected.all().count } == 0)
    }
}
