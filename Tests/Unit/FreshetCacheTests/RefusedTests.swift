import Glibc
import TestSupport
import Testing

@testable import FreshetCache

private let url = "https://example.com/jwks"

@Suite("What a check refused")
struct RefusedTests {
    private let fixture: CacheFixture

    init() throws {
        fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("1")], at: 1)
    }

    @discardableResult
    private func refuse(
        _ text: String, because reason: String = "too short", tag: String? = "2", at seconds: Int64 = 10
    ) throws -> RejectionOutcome {
        try fixture.refuse(text, because: reason, tag: tag, at: seconds)
    }

    private func refused(at seconds: Int64 = 20) throws -> RejectedCandidate? {
        try fixture.cache.refused("jwks", at: WallTime(seconds: seconds))
    }

    private func names() throws -> [String] {
        try fixture.names("generations/jwks").map { String($0.prefix { $0 != "-" }) }
    }

    private let myself = FileReader(user: geteuid(), groups: [getegid()])

    @Test("is kept aside instead of what was refused before; readers, validators and numbers stay")
    func keptAside() throws {
        guard case .kept(let first) = try refuse("x") else { throw TestFailure() }
        #expect(first.reason == "too short" && first.size == 1)
        try refuse("yy", because: "worse", at: 11)
        let refused = try #require(try refused())
        #expect(refused.reason == "worse" && refused.refusedAt == WallTime(seconds: 11))
        #expect(try names() == ["1", "refused"])
        #expect(try fixture.reader() == "one")
        #expect(try fixture.cache.validators("jwks", url: url)?.entityTag == "1")
        let content = try #require(
            try fixture.cache.openRefused(of: "jwks", for: myself, at: WallTime(seconds: 20)))
        #expect(try content.read(100) == Array("yy".utf8))
        try fixture.commit("two", at: 12)
        #expect(try fixture.cache.current("jwks")?.number == 2)
        #expect(try self.refused()?.reason == "worse")
    }

    @Test("is known to be kept by its digest, until its week is over or its file is gone")
    func keeps() throws {
        guard case .kept(let first) = try refuse("x"), case .kept(let second) = try refuse("yy") else {
            throw TestFailure()
        }
        func keeps(_ candidate: RejectedCandidate, at now: WallTime = WallTime(seconds: 20)) throws -> Bool {
            try fixture.cache.keepsRefused("jwks", candidate.digest.description, at: now)
        }
        #expect(try keeps(second))
        #expect(try !keeps(first))
        #expect(try !keeps(second, at: second.keptUntil))
        let file = try #require(try fixture.names("generations/jwks").first { $0.hasPrefix("refused-") })
        try #require(unlink("\(fixture.directory.cache)/generations/jwks/\(file)") == 0)
        #expect(try !keeps(second))
    }

    @Test("and is the copy, is not kept: the check alone is new")
    func isCopy() throws {
        guard case .isCopy(let digest) = try refuse("one") else {
            Issue.record("it is kept aside")
            return
        }
        #expect(try fixture.cache.isCopy("jwks", digest.description))
        #expect(try !fixture.cache.isCopy("jwks", ContentDigest(of: Array("x".utf8)).description))
        #expect(try refused() == nil)
        #expect(try names() == ["1"])
    }

    @Test("becomes the copy when it is accepted, as a new generation with its validators, checked when it was refused")
    func accepted() throws {
        try refuse("x")
        let outcome = try fixture.cache.accept(.jwks, at: WallTime(seconds: 30))
        #expect(outcome.generation.number == 2 && outcome.replaced == 1)
        #expect(try fixture.reader() == "x")
        #expect(try names() == ["1", "2"])
        #expect(try refused() == nil)
        #expect(try fixture.cache.validators("jwks", url: url)?.entityTag == "2")
        #expect(try fixture.cache.refreshState("jwks").lastSuccess == WallTime(seconds: 10))
        #expect(try LinuxFileSystem().status(outcome.generation.path)?.links == 2)
        // When it comes again it passes, as long as it is kept.
        guard case .accepted(.unchanged(let generation)) = try refuse("x", at: 40) else { throw TestFailure() }
        #expect(generation.number == 2)
        try fixture.commit("three", at: 50)
        guard case .accepted(.changed(let again)) = try refuse("x", at: 60) else { throw TestFailure() }
        #expect(again.number == 4)
        #expect(try fixture.reader() == "x")
    }

    @Test(
        "and is older than the last check, is accepted without a word on when that was, and stays when it comes again")
    func acceptedLate() throws {
        try refuse("x", at: 10)
        try fixture.commit("two", validators: [.tag("3")], at: 20)
        let outcome = try fixture.cache.accept(.jwks, at: WallTime(seconds: 30))
        #expect(outcome.generation.number == 3 && outcome.generation.isBehind)
        #expect(try fixture.cache.refreshState("jwks").lastSuccess == WallTime(seconds: 20))
        #expect(try fixture.commit("two", validators: [.tag("3")], at: 40).generation.number == 3)
        #expect(try fixture.reader() == "x")
        #expect(try fixture.commit("three", at: 50).generation.number == 4)
    }

    @Test("is nothing to be accepted any more when a check has let it pass since")
    func passedSince() throws {
        try refuse("x")
        try fixture.commit("x", at: 20)
        #expect(try refused() == nil)
        #expect(try names() == ["1", "2"])
        #expect(throws: CacheError.noCandidate) { try fixture.cache.accept(.jwks, at: WallTime(seconds: 30)) }
    }

    @Test("and was accepted, is refused again when no generation of it is kept any more")
    func acceptedLongAgo() throws {
        try refuse("x")
        _ = try fixture.cache.accept(.jwks, at: WallTime(seconds: 30))
        for text in ["two", "three", "four"] { try fixture.commit(text, at: 40) }
        guard case .kept = try refuse("x", at: 60) else { throw TestFailure() }
        #expect(try fixture.reader() == "four")
    }

    @Test("is forgotten at a start that does not find its file")
    func fileGone() throws {
        try refuse("x")
        #expect(
            unlink(fixture.directory.cache + "/generations/jwks/" + (try fixture.names("generations/jwks")[1])) == 0)
        let restarted = try restarted()
        #expect(try restarted.cache.refused("jwks", at: WallTime(seconds: 20)) == nil)
        #expect(try restarted.cache.memory("jwks", key: "k")?.refused == nil)
    }

    @Test("is accepted only if it is what was meant; a pin and nothing at all are said")
    func notAccepted() throws {
        #expect(throws: CacheError.noCandidate) { try fixture.cache.accept(.jwks, at: WallTime(seconds: 30)) }
        guard case .kept(let refused) = try refuse("x") else { throw TestFailure() }
        #expect(throws: CacheError.otherCandidate(refused.digest)) {
            try fixture.cache.accept(.jwks, "0000", at: WallTime(seconds: 30))
        }
        _ = try fixture.cache.pin("jwks", at: WallTime(seconds: 20))
        #expect(throws: CacheError.pinned(1)) { try fixture.cache.accept(.jwks, at: WallTime(seconds: 30)) }
        _ = try fixture.cache.unpin("jwks")
        let prefix = String(refused.digest.description.prefix(4)).uppercased()
        #expect(try fixture.cache.accept(.jwks, prefix, at: WallTime(seconds: 30)).generation.number == 2)
    }

    @Test("is kept for a week, and its file goes with the next run after that")
    func week() throws {
        try refuse("x", at: 10)
        let week: Int64 = 7 * 86_400
        #expect(try refused(at: 10 + week - 1) != nil)
        #expect(try refused(at: 10 + week) == nil)
        #expect(throws: CacheError.noCandidate) { try fixture.cache.accept(.jwks, at: WallTime(seconds: 10 + week)) }
        #expect(try names() == ["1", "refused"])
        try fixture.cache.record(
            RunRecord(
                number: 3, pipeline: "jwks", causes: "timer", started: WallTime(seconds: 10 + week),
                finished: WallTime(seconds: 10 + week), outcome: .unchanged, error: nil, generation: 1))
        #expect(try names() == ["1"])
    }

    @Test("is nothing that an examination finds; what was refused before is")
    func examination() throws {
        try refuse("x")
        let directory = fixture.directory.cache + "/generations/jwks/"
        let digest = try ContentDigest(of: Array("old".utf8))
        #expect(try fixture.cache.examine("jwks").findings.isEmpty)
        try LinuxFileSystem().link(
            directory + "refused-\(try ContentDigest(of: Array("x".utf8)))", to: directory + "refused-\(digest)")
        #expect(try fixture.cache.examine("jwks").findings.map(\.kind) == [.unfinished])
        _ = try fixture.cache.examine("jwks", mends: true)
        #expect(try names() == ["1", "refused"])
        #expect(try fixture.cache.accept(.jwks, at: WallTime(seconds: 30)).generation.number == 2)
        #expect(try fixture.cache.examine("jwks").findings.isEmpty)
    }

    @Test("and was damaged since, is nothing that could be accepted")
    func damaged() throws {
        guard case .kept(let refused) = try refuse("x") else { throw TestFailure() }
        let path = fixture.directory.cache + "/generations/jwks/refused-\(refused.digest)"
        let descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        try #require(descriptor >= 0)
        close(descriptor)
        #expect(throws: CacheError.noCandidate) { try fixture.cache.accept(.jwks, at: WallTime(seconds: 30)) }
        #expect(throws: CacheError.noCandidate) {
            try fixture.cache.openRefused(of: "jwks", for: myself, at: WallTime(seconds: 20))
        }
        #expect(try fixture.reader() == "one")
    }

    @Test("outlasts a restart; what the index does not know goes then")
    func restart() throws {
        try refuse("x")
        let directory = fixture.directory.cache + "/generations/jwks/"
        let digest = try ContentDigest(of: Array("old".utf8))
        try LinuxFileSystem().link(
            directory + (try fixture.names("generations/jwks")[1]), to: directory + "refused-\(digest)")
        let restarted = try restarted()
        #expect(try restarted.cache.refused("jwks", at: WallTime(seconds: 20))?.reason == "too short")
        #expect(try restarted.cache.memory("jwks", key: "k")?.refused?.reason == "too short")
        #expect(try restarted.cache.memories(key: "k")["jwks"]?.refused?.reason == "too short")
        #expect(try restarted.names("generations/jwks").count == 2)
        #expect(try restarted.cache.accept(.jwks, at: WallTime(seconds: 30)).generation.number == 2)
    }

    /// Another life, on a copy of what this one has on disk.
    private func restarted() throws -> CacheFixture {
        let copy = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        try TemporaryDirectory.copy(fixture.directory.cache, to: copy.cache, links: &links)
        try TemporaryDirectory.copy(fixture.directory.state, to: copy.state, links: &links)
        return try CacheFixture(copy)
    }
}

private struct TestFailure: Error {}
