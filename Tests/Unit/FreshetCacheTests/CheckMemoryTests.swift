import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A conditional check from memory")
struct CheckMemoryTests {
    private static let binding = "https://example.com/jwks"

    private func remembered(_ fixture: CacheFixture) -> Validators? {
        fixture.cache.checks.validators("jwks", boundTo: Self.binding)
    }

    private func confirm(_ fixture: CacheFixture, _ tag: String, new: String? = nil, at seconds: Int64 = 50) -> Bool {
        fixture.cache.checks.recordUnchanged(
            "jwks", asked: .tag(tag), validators: new.map { .tag($0) }, expires: nil, at: WallTime(seconds: seconds))
            != nil
    }

    private func lastSuccess(_ fixture: CacheFixture) throws -> WallTime? {
        try fixture.cache.records.refreshState("jwks").lastSuccess
    }

    @Test("needs no index after a commit, or after the first check since the start")
    func known() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            #expect(remembered(fixture) == nil)
            try fixture.commit("one", validators: [.tag("a")])
            #expect(remembered(fixture) == .tag("a"))
            #expect(fixture.cache.checks.validators("jwks", boundTo: "another") == nil)
        }
        let fixture = try CacheFixture(directory)
        #expect(remembered(fixture) == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: Self.binding) == .tag("a"))
        #expect(remembered(fixture) == .tag("a"))
        #expect(confirm(fixture, "a", at: 2000))
        #expect(try lastSuccess(fixture) == WallTime(seconds: 2000))
    }

    @Test("uses the validators of the last response, unless they are too long for the index")
    func newValidators() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")])
        #expect(confirm(fixture, "a", new: "b"))
        #expect(remembered(fixture) == .tag("b"))
        #expect(!confirm(fixture, "a"))
        let long = String(repeating: "t", count: CacheLimits.validatorBytes + 1)
        #expect(!confirm(fixture, "b", new: long))
        try fixture.commit("two", validators: [.tag(long)])
        #expect(remembered(fixture) == nil)
    }

    @Test(
        "does not trust a published file that is missing or another one",
        arguments: ["rm current/jwks.json", "touch -d @1 current/jwks.json", "mv current elsewhere"])
    func changedFile(command: String) throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")])
        try #require(system("cd '\(fixture.directory.cache)' && \(command)") == 0)
        #expect(remembered(fixture) == nil)
        #expect(!confirm(fixture, "a"))
    }

    @Test("does not confirm content that was replaced while the origin answered")
    func replaced() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        #expect(remembered(fixture) == .tag("a"))
        try fixture.commit("two", validators: [.tag("b")], at: 20)
        #expect(!confirm(fixture, "a"))
        #expect(try lastSuccess(fixture) == WallTime(seconds: 20))
    }

    @Test("does not confirm a copy that lost its file to another pipeline")
    func reassigned() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        try fixture.cache.ownership.assign([("other", "jwks.json")])
        #expect(remembered(fixture) == nil)
        #expect(!confirm(fixture, "a"))
    }

    @Test("forgets everything when the index was replaced")
    func replacedIndex() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        #expect(throws: CacheError.self) {
            try fixture.cache.context.withIndex { (_) throws(SQLiteError) -> Int in
                throw SQLiteError.damage("a test", during: "a test")
            }
        }
        #expect(remembered(fixture) == nil)
        #expect(!confirm(fixture, "a"))
    }

    @Test("a record that waits is left out if the copy changed before it was stored")
    func lateRecord() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        let check = ConfirmedCheck(
            pipeline: "jwks", digest: try ContentDigest(of: Array("another".utf8)), validators: .tag("z"),
            at: WallTime(seconds: 99))
        _ = fixture.cache.context.index.deferred.append(.check(check))
        #expect(try lastSuccess(fixture) == WallTime(seconds: 10))
        #expect(try fixture.cache.validators("jwks", boundTo: Self.binding) == .tag("a"))
    }

    @Test("agrees with the index after any sequence of changes", arguments: 1...20)
    func agreement(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let fixture = try CacheFixture()
        var destination = CacheDestination.jwks
        destination.keep = 3
        var answers = 0
        for step in 1...100 {
            let now = Int64(step) * 10
            let tag = "\(step)"
            switch Int.random(in: 0..<14, using: &random) {
            case 0...4:
                let text = ["one", "two", "three"].randomElement(using: &random) ?? ""
                _ = try? fixture.commit(
                    text, to: destination, validators: Bool.random(using: &random) ? [.tag(tag)] : [],
                    isCheck: Bool.random(using: &random), at: now)
            case 5: _ = try? fixture.cache.generations.rollBack(destination, to: nil)
            case 6: _ = try? fixture.cache.generations.pin("jwks", at: WallTime(seconds: now))
            case 7: _ = try? fixture.cache.generations.unpin("jwks")
            case 8: _ = try? fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: now))
            case 9: _ = try? fixture.cache.withdrawals.putBack(destination)
            case 10: _ = try? fixture.reject("bad", tag: tag, at: now)
            case 11: _ = try? fixture.cache.rejections.accept(destination, at: WallTime(seconds: now))
            case 12: _ = unlink(fixture.directory.cache + "/current/jwks.json")
            default:
                destination.mode = destination.mode == 0o644 ? 0o640 : 0o644
                try? fixture.cache.setAccess(destination)
            }
            if Bool.random(using: &random), let known = remembered(fixture) {
                let new = Bool.random(using: &random) ? BoundValidators.tag("new \(step)") : nil
                let asked = BoundValidators(binding: Self.binding, known)
                let isRecorded =
                    fixture.cache.checks.recordUnchanged(
                        "jwks", asked: asked, validators: new, expires: nil, at: WallTime(seconds: now + 1)) != nil
                #expect(isRecorded)
                #expect(try lastSuccess(fixture) == WallTime(seconds: now + 1))
                #expect(remembered(fixture) == new?.validators ?? known)
            }
            let known = remembered(fixture)
            if let known {
                answers += 1
                #expect(try fixture.cache.validators("jwks", boundTo: Self.binding) == known, "step \(step)")
            } else if Bool.random(using: &random) {
                _ = try fixture.cache.validators("jwks", boundTo: Self.binding)
            }
        }
        #expect(answers > 0)
    }
}
