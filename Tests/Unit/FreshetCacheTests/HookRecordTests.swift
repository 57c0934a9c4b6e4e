import TestSupport
import Testing

@testable import FreshetCache

@Suite("The index remembers hooks")
struct HookRecordTests {
    private func content(_ number: Int64, _ text: String = "x") throws -> HookContent {
        HookContent(StoredContent(number: number, digest: try ContentDigest(of: Array(text.utf8))))
    }

    private func assign(
        _ fixture: CacheFixture, _ hooks: [String], told: HookContent? = nil, of pipeline: String = "jwks"
    ) throws -> [String: HookRecord]? {
        try fixture.cache.assignHooks([PipelineHooks(pipeline: pipeline, hooks: hooks, told: told)])[pipeline]
    }

    @Test("a new one with what it need not be told, a known one as it was, across restarts")
    func assigned() throws {
        let directory = try TemporaryDirectory.forCache()
        let record = HookRecord(
            told: try content(1), tried: try content(2, "y"), attempts: 3, failingSince: WallTime(seconds: 9),
            error: "broken")
        do {
            let fixture = try CacheFixture(directory)
            #expect(try assign(fixture, ["a"], told: content(1)) == ["a": HookRecord(told: content(1))])
            #expect(try assign(fixture, ["a"], told: content(7)) == ["a": HookRecord(told: content(1))])
            try fixture.cache.record(record, of: "a", of: "jwks")
        }
        let fixture = try CacheFixture(directory)
        #expect(try assign(fixture, ["a", "b"], told: nil) == ["a": record, "b": HookRecord()])
    }

    @Test("one that is not configured any more is forgotten, and what still runs of it brings nothing back")
    func forgotten() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a", "b"], told: content(1))
        #expect(try assign(fixture, ["b"], told: content(2)) == ["b": HookRecord(told: content(1))])
        try fixture.cache.record(HookRecord(told: content(1), tried: content(1)), of: "a", of: "jwks")
        #expect(try assign(fixture, ["a"], told: content(3)) == ["a": HookRecord(told: content(3))])
        #expect(try assign(fixture, []) == nil)
        #expect(try assign(fixture, ["a"], told: content(4)) == ["a": HookRecord(told: content(4))])
    }

    @Test("those of pipelines that are not spoken of stay")
    func others() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a"], told: content(1), of: "faulty")
        _ = try assign(fixture, ["a"], told: content(2))
        #expect(try assign(fixture, ["a"], of: "faulty") == ["a": HookRecord(told: content(1))])
    }

    @Test("that it was told of a copy that is withdrawn")
    func withdrawn() throws {
        let directory = try TemporaryDirectory.forCache()
        var gone = try content(2)
        gone.isWithdrawn = true
        do {
            let fixture = try CacheFixture(directory)
            #expect(try assign(fixture, ["a"], told: gone) == ["a": HookRecord(told: gone)])
            try fixture.cache.record(HookRecord(told: content(2), tried: gone, attempts: 1), of: "a", of: "jwks")
        }
        let fixture = try CacheFixture(directory)
        #expect(try assign(fixture, ["a"]) == ["a": HookRecord(told: content(2), tried: gone, attempts: 1)])
    }

    @Test("errors up to a limit")
    func limit() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a"])
        let long = String(repeating: "e", count: CacheLimits.runTextBytes + 1)
        try fixture.cache.record(HookRecord(error: long), of: "a", of: "jwks")
        #expect(try assign(fixture, ["a"])?["a"]?.error?.utf8.count == CacheLimits.runTextBytes)
    }

    @Test("where a generation's content is, as long as it is kept, and what is known of it beyond that")
    func found() throws {
        let fixture = try CacheFixture()
        for text in ["one", "two"] { try fixture.commit(text) }
        let kept = try #require(try fixture.cache.find(content(1, "one").content, of: "jwks"))
        let path = try #require(kept.path)
        #expect(try TemporaryDirectory.read(path) == Array("one".utf8) && kept.generation.size == 3)
        for number in 3...9 { try fixture.commit("\(number)") }
        let gone = try #require(try fixture.cache.find(content(1, "one").content, of: "jwks"))
        #expect(gone.path == nil && gone.generation.size == 3)
        #expect(try fixture.cache.find(content(1, "two").content, of: "jwks") == nil)
    }
}
