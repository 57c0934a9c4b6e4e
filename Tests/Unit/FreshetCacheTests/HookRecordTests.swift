import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The index stores hooks")
struct HookRecordTests {
    private func content(_ number: UInt64, _ text: String = "x") throws -> GenerationIdentity {
        GenerationIdentity(number: number, digest: try ContentDigest(of: Array(text.utf8)))
    }

    private func assign(
        _ fixture: CacheFixture, _ hooks: [String], notified: GenerationIdentity? = nil, of pipeline: String = "jwks"
    ) throws -> [String: StoredHookState]? {
        try fixture.cache.records.assignHooks([PipelineHooks(pipeline: pipeline, hooks: hooks, notified: notified)])[
            pipeline]
    }

    @Test("a new hook gets the notified content, and a known hook keeps its record, across restarts")
    func assigned() throws {
        let directory = try TemporaryDirectory.forCache()
        let record = StoredHookState(
            notified: try content(1), tried: try content(2, "y"), attempts: 3, failingSince: WallTime(seconds: 9),
            error: "broken")
        do {
            let fixture = try CacheFixture(directory)
            #expect(try assign(fixture, ["a"], notified: content(1)) == ["a": StoredHookState(notified: content(1))])
            #expect(try assign(fixture, ["a"], notified: content(7)) == ["a": StoredHookState(notified: content(1))])
            try fixture.cache.records.record(record, of: "a", of: "jwks")
        }
        let fixture = try CacheFixture(directory)
        #expect(try assign(fixture, ["a", "b"], notified: nil) == ["a": record, "b": StoredHookState()])
    }

    /// Another caller's transaction may have stored the new hook before, and such a transaction need not be durable.
    @Test("a new hook is recorded durably whichever transaction stored it: the log is flushed afterwards")
    func flushed() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a"], notified: content(1))
        let log = fixture.directory.state + "/index.sqlite-wal"
        // SQLite has the file open, and nobody else can flush it by its name.
        #expect(rename(log, log + "2") == 0 && symlink("index.sqlite-wal2", log) == 0)
        defer { rename(log + "2", log) }
        #expect(try assign(fixture, ["a"], notified: content(1))?.keys.sorted() == ["a"])
        #expect(throws: CacheError.self) { try assign(fixture, ["a", "b"], notified: content(1)) }
    }

    @Test("a hook that is no longer configured is deleted, and its last run does not restore it")
    func forgotten() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a", "b"], notified: content(1))
        #expect(try assign(fixture, ["b"], notified: content(2)) == ["b": StoredHookState(notified: content(1))])
        try fixture.cache.records.record(StoredHookState(notified: content(1), tried: content(1)), of: "a", of: "jwks")
        try fixture.cache.records.record(StoredHookState(notified: content(3)), of: "b", of: "jwks")
        #expect(try assign(fixture, ["a"], notified: content(3)) == ["a": StoredHookState(notified: content(3))])
        #expect(try assign(fixture, []) == nil)
        #expect(try assign(fixture, ["a"], notified: content(4)) == ["a": StoredHookState(notified: content(4))])
    }

    /// Version 1.4 and earlier stored a command with characters besides ASCII unchanged.
    @Test("after an upgrade, a command with characters besides ASCII is pending exactly if it was pending before")
    func upgraded() throws {
        let (old, new) = ("/usr/bin/notify größe", #"/usr/bin/notify gr\xc3\xb6\xc3\x9fe"#)
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            _ = try assign(fixture, [old], notified: content(1))
            _ = try assign(fixture, [old], notified: content(1), of: "pending")
            try fixture.cache.records.record(StoredHookState(notified: content(2)), of: old, of: "jwks")
            try fixture.cache.records.record(
                StoredHookState(notified: content(1), tried: content(2), attempts: 3, error: "broken"), of: old,
                of: "pending")
        }
        for _ in 0..<2 {
            let fixture = try CacheFixture(directory)
            #expect(try assign(fixture, [new], notified: content(2)) == [new: StoredHookState(notified: content(2))])
            #expect(
                try assign(fixture, [new], notified: content(2), of: "pending")
                    == [new: StoredHookState(notified: content(1))])
            #expect(try assign(fixture, [new], notified: content(2))?.keys.sorted() == [new])
        }
    }

    @Test("a hook whose pipelines are unknown keeps its records")
    func kept() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a", "hook x"], notified: content(1))
        let records = fixture.cache.records
        let own = try PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: content(2))
        _ = try records.assignHooks([own], keeping: ["hook x"])
        #expect(
            try assign(fixture, ["a", "hook x"], notified: content(3))?["hook x"]
                == StoredHookState(notified: content(1)))
        _ = try records.assignHooks([own])
        #expect(
            try assign(fixture, ["a", "hook x"], notified: content(3))?["hook x"]
                == StoredHookState(notified: content(3)))
    }

    @Test("the states that a hook has for several pipelines are stored together")
    func several() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["hook x"], notified: content(1))
        _ = try assign(fixture, ["hook x"], notified: content(1), of: "other")
        let (first, second) = (StoredHookState(notified: try content(2)), StoredHookState(notified: try content(3)))
        try fixture.cache.records.record([("jwks", first), ("other", second)], of: "hook x")
        #expect(try assign(fixture, ["hook x"]) == ["hook x": first])
        #expect(try assign(fixture, ["hook x"], of: "other") == ["hook x": second])
        #expect(throws: CacheError.self) {
            try fixture.cache.records.record([("jwks", second), ("../x", second)], of: "hook x")
        }
        #expect(try assign(fixture, ["hook x"]) == ["hook x": first])
    }

    @Test("a new hook that replaces a pending one is pending, too; one beside it is not")
    func replaced() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["typo"], notified: content(1))
        // The content is now 2, and the hook fails.
        try fixture.cache.records.record(
            StoredHookState(notified: content(1), tried: content(2), attempts: 3), of: "typo", of: "jwks")
        #expect(try assign(fixture, ["typo", "other"], notified: content(2))?["other"]?.isPending(content(2)) == false)
        #expect(try assign(fixture, ["right", "other"], notified: content(2))?["right"]?.notified == content(1))
        // It has failed for content 3, and the content is 2 again, of which it was notified before.
        let undone = StoredHookState(notified: try content(2), tried: try content(3), attempts: 1)
        try fixture.cache.records.record(undone, of: "right", of: "jwks")
        #expect(try assign(fixture, ["best", "other"], notified: content(2))?["best"]?.isPending(content(2)) == true)
        #expect(try assign(fixture, ["best", "other"], notified: content(2))?["other"]?.isPending(content(2)) == false)
    }

    @Test("hooks of pipelines that are not listed stay")
    func others() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a"], notified: content(1), of: "faulty")
        _ = try assign(fixture, ["a"], notified: content(2))
        #expect(try assign(fixture, ["a"], of: "faulty") == ["a": StoredHookState(notified: content(1))])
    }

    @Test("whether the notified copy was withdrawn")
    func withdrawn() throws {
        let directory = try TemporaryDirectory.forCache()
        var gone = try content(2)
        gone.isWithdrawn = true
        do {
            let fixture = try CacheFixture(directory)
            #expect(try assign(fixture, ["a"], notified: gone) == ["a": StoredHookState(notified: gone)])
            try fixture.cache.records.record(
                StoredHookState(notified: content(2), tried: gone, attempts: 1), of: "a", of: "jwks")
        }
        let fixture = try CacheFixture(directory)
        #expect(try assign(fixture, ["a"]) == ["a": StoredHookState(notified: content(2), tried: gone, attempts: 1)])
    }

    @Test("errors are cut at a limit")
    func limit() throws {
        let fixture = try CacheFixture()
        _ = try assign(fixture, ["a"])
        let long = String(repeating: "e", count: CacheLimits.runTextBytes + 1)
        try fixture.cache.records.record(StoredHookState(error: long), of: "a", of: "jwks")
        #expect(try assign(fixture, ["a"])?["a"]?.error?.utf8.count == CacheLimits.runTextBytes)
    }

    @Test("a generation is found with its path as long as its content is kept, and without it afterwards")
    func found() throws {
        let fixture = try CacheFixture()
        for text in ["one", "two"] { try fixture.commit(text) }
        let kept = try #require(try fixture.cache.generations.find(content(1, "one"), of: "jwks"))
        let path = try #require(kept.path)
        #expect(try TemporaryDirectory.read(path) == Array("one".utf8) && kept.generation.size == 3)
        for number in 3...9 { try fixture.commit("\(number)") }
        let gone = try #require(try fixture.cache.generations.find(content(1, "one"), of: "jwks"))
        #expect(gone.path == nil && gone.generation.size == 3)
        #expect(try fixture.cache.generations.find(content(1, "two"), of: "jwks") == nil)
    }

    @Test(
        "a hook that ran while there was no space is pending after a rollback that a kill left halfway",
        arguments: [false, true])
    func fullIndex(_ isNew: Bool) throws {
        let (fixture, hooks) = (
            try CacheFixture(), [PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: try content(1, "one"))]
        )
        let records = fixture.cache.records
        try fixture.commit("one")
        if !isNew { _ = try records.assignHooks(hooks) }
        try fixture.commit("two")
        try fixture.cache.context.fill(["hooks"])
        if isNew {
            // The pipeline was removed and is added again: its hook is new.
            let added = [PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: try content(2, "two"))]
            #expect(try records.assignHooks(added)["jwks"] == ["a": StoredHookState(notified: content(2, "two"))])
        } else {
            try records.record(
                StoredHookState(notified: content(1, "one"), tried: content(2, "two")), of: "a", of: "jwks")
            try records.record(StoredHookState(notified: content(2, "two")), of: "a", of: "jwks")
        }
        // Without space, nothing is rolled back.
        #expect(throws: CacheError.self) { try fixture.cache.generations.rollBack(.jwks, to: 1) }
        #expect(try fixture.reader() == "two")
        try fixture.cache.context.free()
        _ = try fixture.cache.generations.rollBack(.jwks, to: 1)
        let killed = try CacheFixture(try fixture.directory.copied())
        let state = try killed.cache.records.assignHooks(hooks)["jwks"]?["a"]
        #expect(try state?.isPending(content(1, "one")) == true)
    }
}
