import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

private let url = "https://example.com/jwks"

/// A cache with three kept generations.
private func threeGenerations() throws -> (fixture: CacheFixture, destination: CacheDestination) {
    var destination = CacheDestination.jwks
    destination.keep = 5
    let fixture = try CacheFixture()
    for (offset, text) in ["one", "two", "three"].enumerated() {
        try fixture.commit(text, to: destination, validators: [.tag(text)], at: Int64(offset))
    }
    return (fixture, destination)
}

/// Overwrites a file in place.
private func damage(_ path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, "?", 1, 0) == 1)
}

@Suite("A rollback")
struct RollbackTests {
    @Test("publishes the previous generation again, under its number, in a new file")
    func before() throws {
        let (fixture, base) = try threeGenerations()
        var destination = base
        destination.mode = 0o640
        let outcome = try fixture.cache.generations.rollBack(destination, to: nil)
        #expect(outcome.generation.number == 2)
        #expect(outcome.replaced == 3)
        #expect(outcome.generation.isBehind)
        #expect(outcome.generation.committedAt == WallTime(seconds: 1))
        #expect(try fixture.reader() == "two")
        #expect(try TemporaryDirectory.mode(outcome.generation.path) == 0o640)
        let current = try #require(try fixture.cache.current("jwks"))
        #expect(current.number == 2 && current.isBehind && current.digest == outcome.generation.digest)
        #expect(try fixture.names("generations/jwks").map { $0.prefix { $0 != "-" } } == ["1", "2", "3"])
        #expect(try fixture.names("current") == ["jwks.json"])
        let status = try #require(try LinuxFileSystem().status(outcome.generation.path))
        #expect(status.links == 2)
        // A start finds nothing to repair.
        let directory = fixture.directory
        let restarted = try reopened(directory, fixture)
        #expect(restarted.report == RecoveryReport(index: .opened))
        #expect(try restarted.cache.current("jwks")?.isBehind == true)
    }

    private func reopened(_ directory: TemporaryDirectory, _ old: consuming CacheFixture) throws -> CacheFixture {
        _ = consume old
        let copy = try directory.copied()
        // The copies have other times: the first start records them.
        _ = try CacheFixture(copy)
        return try CacheFixture(copy)
    }

    @Test("accepts any kept generation, also a newer one, and fails with a specific error for others")
    func numbers() throws {
        let (fixture, destination) = try threeGenerations()
        #expect(try fixture.cache.generations.rollBack(destination, to: 1).generation.number == 1)
        #expect(throws: CacheError.notKept(nil, kept: [1, 2, 3])) {
            try fixture.cache.generations.rollBack(destination, to: nil)
        }
        #expect(throws: CacheError.notKept(9, kept: [1, 2, 3])) {
            try fixture.cache.generations.rollBack(destination, to: 9)
        }
        let same = try fixture.cache.generations.rollBack(destination, to: 1)
        #expect(same.replaced == nil && same.generation.revision == 0)
        let newest = try fixture.cache.generations.rollBack(destination, to: 3)
        #expect(newest.replaced == 1 && !newest.generation.isBehind)
        #expect(try fixture.reader() == "three")
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("three"))
        #expect(throws: CacheError.notKept(nil, kept: [])) {
            try fixture.cache.generations.rollBack(CacheDestination(pipeline: "other", file: "other"), to: nil)
        }
    }

    @Test("is not undone by the origin's old content, confirmed or sent again; other content replaces it")
    func stays() throws {
        let (fixture, destination) = try threeGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 1)
        // The request has the validators of the origin's content, and its 304 changes nothing.
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("three"))
        let confirmed = try fixture.cache.records.recordUnchanged(
            "jwks", asked: .tag("three"), validators: [.tag("three again")], at: WallTime(seconds: 10))
        #expect(confirmed?.number == 1 && confirmed?.isBehind == true)
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("three again"))
        let declined = try fixture.commit("three", to: destination, validators: [.tag("c")], at: 20)
        guard case .declined(let generation, isNew: false) = declined else {
            Issue.record("\(declined)")
            return
        }
        #expect(generation.number == 1 && generation.isBehind)
        #expect(try fixture.reader() == "one")
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("c"))
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 20))
        #expect(try fixture.names("generations/jwks").count == 3)
        let changed = try fixture.commit("four", to: destination, validators: [.tag("d")], at: 30).generation
        #expect(changed.number == 4 && !changed.isBehind)
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("d"))
        // The origin's earlier content counts as other content again.
        #expect(try fixture.commit("three", to: destination, at: 40).generation.number == 5)
    }

    @Test("to the present content of the origin does not hold back anything")
    func caughtUp() throws {
        let (fixture, destination) = try threeGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 2)
        let outcome = try fixture.commit("two", to: destination, validators: [.tag("b")])
        guard case .unchanged(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.number == 2 && !generation.isBehind)
        #expect(try fixture.cache.current("jwks")?.isBehind == false)
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("b"))
    }

    @Test("ignores a response to a request that was made for other content")
    func crossedAnswer() throws {
        let (fixture, destination) = try threeGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 2)
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        let asked = try #require(try fixture.cache.validators("jwks", boundTo: url))
        _ = try fixture.cache.generations.unpin("jwks")
        #expect(
            try fixture.cache.records.recordUnchanged(
                "jwks", asked: BoundValidators(binding: url, asked), at: WallTime(seconds: 6)) == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: url) == nil)
    }

    @Test("to damaged content fails, and the copy stays")
    func damaged() throws {
        let (fixture, destination) = try threeGenerations()
        let names = try fixture.names("generations/jwks")
        try damage(fixture.directory.cache + "/generations/jwks/" + names[0])
        #expect(unlink(fixture.directory.cache + "/generations/jwks/" + names[1]) == 0)
        for number: Int64 in [1, 2] {
            #expect(throws: CacheError.damaged(number)) {
                try fixture.cache.generations.rollBack(destination, to: number)
            }
        }
        #expect(try fixture.reader() == "three")
        #expect(try fixture.cache.current("jwks")?.isBehind == false)
        #expect(try fixture.names("generations/jwks").count == 2)
        #expect(try fixture.commit("three", to: destination).generation.number == 3)
    }

    @Test("works although the copy is missing")
    func nothingPublished() throws {
        let (fixture, destination) = try threeGenerations()
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        // The generation before it, although the published file is missing.
        let outcome = try fixture.cache.generations.rollBack(destination, to: nil)
        #expect(outcome.generation.number == 2)
        #expect(outcome.replaced == nil && outcome.generation.revision > 0 && outcome.generation.isBehind)
        #expect(try fixture.reader() == "two")
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        let newest = try fixture.cache.generations.rollBack(destination, to: 3)
        #expect(newest.replaced == nil && newest.generation.revision > 0 && !newest.generation.isBehind)
        #expect(try fixture.reader() == "three")
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        #expect(try fixture.cache.generations.rollBack(destination, to: 1).generation.isBehind)
        // Removed again, the copy is restored by the check that finds the origin's old content.
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        guard case .declined(let generation, isNew: false) = try fixture.commit("three", to: destination) else {
            Issue.record("the content was not declined")
            return
        }
        #expect(generation.number == 1 && generation.isBehind)
        #expect(try fixture.reader() == "one")
    }
}

@Suite("A pin")
struct PinTests {
    @Test(
        "keeps the copy from being replaced, across restarts, until unpinned; new content is reported once")
    func stays() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            #expect(throws: CacheError.nothingPublished) {
                try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 1))
            }
            try fixture.commit("one", validators: [.tag("a")])
            let (generation, wasPinned) = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
            #expect(generation.pinnedSince == WallTime(seconds: 5) && !wasPinned && !generation.isBehind)
            #expect(try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 6)).wasPinned)
            #expect(try fixture.commit("one").generation.pinnedSince == WallTime(seconds: 5))
            for (tag, isNew) in [("b", true), ("c", false)] {
                let outcome = try fixture.commit("two", validators: [.tag(tag)], at: 2000)
                guard case .declined(let kept, isNew) = outcome else {
                    Issue.record("\(outcome)")
                    return
                }
                #expect(kept.number == 1 && kept.isBehind && kept.pinnedSince == WallTime(seconds: 5))
            }
            #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("c"))
            #expect(throws: CacheError.pinned(1)) { try fixture.cache.generations.rollBack(.jwks, to: 1) }
        }
        let fixture = try CacheFixture(directory)
        #expect(fixture.report == RecoveryReport(index: .opened))
        let memory = try #require(try fixture.cache.records.memory("jwks", key: "binding"))
        #expect(memory.generation?.pinnedSince == WallTime(seconds: 5))
        #expect(memory.generation?.isBehind == true)
        #expect(memory.generation?.truncated == false)
        #expect(try fixture.reader() == "one")
        let (generation, wasPinned) = try fixture.cache.generations.unpin("jwks")
        #expect(wasPinned && generation?.pinnedSince == nil && generation?.isBehind == false)
        #expect(try !fixture.cache.generations.unpin("jwks").wasPinned)
        // With the validators of its newest content, the origin would answer that nothing has changed.
        #expect(try fixture.cache.validators("jwks", boundTo: url) == .tag("a"))
        #expect(try fixture.commit("two").generation.number == 2)
        #expect(try fixture.reader() == "two")
    }

    @Test("restores the copy if it was removed, and never another generation")
    func putBack() throws {
        let (fixture, destination) = try threeGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 2)
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        let outcome = try fixture.commit("four", to: destination, validators: [.tag("d")])
        guard case .declined(let kept, isNew: true) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(kept.number == 2 && kept.pinnedSince != nil && kept.isBehind)
        #expect(try fixture.reader() == "two")
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        let directory = fixture.directory
        let restarted = try restart(directory, fixture)
        #expect(try restarted.reader() == "two")
        #expect(try restarted.cache.current("jwks")?.number == 2)
    }

    private func restart(_ directory: TemporaryDirectory, _ old: consuming CacheFixture) throws -> CacheFixture {
        _ = consume old
        let copy = try directory.copied()
        return try CacheFixture(copy)
    }

    @Test("at missing content prevents other content from taking its place, but not the same content")
    func gone() throws {
        let (fixture, destination) = try threeGenerations()
        _ = try fixture.cache.generations.rollBack(destination, to: 2)
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        // The copy and its generation are one file.
        try damage(fixture.directory.cache + "/current/jwks.json")
        let directory = fixture.directory
        let restarted = try restart(directory, fixture)
        #expect(
            restarted.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.withheld])])
        #expect(try restarted.cache.current("jwks") == nil)
        #expect(throws: CacheError.pinnedGone(2)) { try restarted.commit("four", to: destination) }
        #expect(try restarted.cache.current("jwks") == nil)
        let outcome = try restarted.commit("two", to: destination)
        guard case .restored(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(generation.number == 2 && generation.pinnedSince == WallTime(seconds: 5))
        #expect(try restarted.reader() == "two")
        _ = try restarted.cache.generations.unpin("jwks")
        #expect(try restarted.commit("four", to: destination).generation.number == 4)
    }

    @Test("ends with the content when all content is removed, also for 'unpin'")
    func cleaned() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one")
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        TemporaryDirectory.remove(fixture.directory.cache)
        #expect(throws: CacheError.pinnedGone(1)) { try fixture.commit("two") }
        let (generation, wasPinned) = try fixture.cache.generations.unpin("jwks")
        #expect(generation == nil && wasPinned)
        #expect(try fixture.commit("two").generation.number == 2)
    }
}
