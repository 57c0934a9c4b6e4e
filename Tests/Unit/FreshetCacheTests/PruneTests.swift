import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("Content of a pipeline that is not configured")
struct PruneTests {
    private static let other = CacheDestination(pipeline: "other", file: "other.json")

    /// A pipeline with two generations and rejected content, and a second pipeline.
    private func makeFixture(_ files: any FileSystem = LinuxFileSystem()) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("one", validators: [.tag("1")], at: 1)
        try fixture.commit("three", validators: [.tag("2")], at: 2)
        try fixture.reject("bad", at: 3)
        try fixture.commit("other", to: Self.other, at: 4)
        return fixture
    }

    private let holding = CacheUsage(
        pipeline: "jwks", file: "jwks.json", generations: 2, bytes: 11, committedAt: WallTime(seconds: 2))

    @Test("is listed with its size")
    func holdings() throws {
        let fixture = try makeFixture()
        #expect(try fixture.cache.pruner.holdings(besides: ["jwks", "other"]) == [])
        #expect(try fixture.cache.pruner.holdings(besides: ["other"]) == [holding])
        #expect(try fixture.cache.pruner.holdings(besides: []).map(\.pipeline) == ["jwks", "other"])
        // Without an index only the name of the directory is known.
        #expect(mkdir(fixture.directory.cache + "/generations/lost", 0o700) == 0)
        #expect(
            try fixture.cache.pruner.holdings(besides: ["jwks", "other"])
                == [CacheUsage(pipeline: "lost", generations: 0, bytes: 0)])
        #expect(try fixture.cache.pruner.prune("lost") != nil)
        #expect(try fixture.cache.pruner.prune("lost") == nil)
    }

    @Test("is removed completely, and other pipelines do not change")
    func removed() throws {
        let fixture = try makeFixture()
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        try fixture.cache.records.recordParameters("jwks") { ["language": "de"] }
        #expect(try fixture.cache.pruner.prune("jwks") == holding)
        #expect(try fixture.names("current") == ["other.json"])
        #expect(try fixture.names("generations") == ["other"])
        #expect(try fixture.cache.pruner.holdings(besides: ["other"]) == [])
        #expect(try fixture.cache.records.memory("jwks", key: "binding") == nil)
        #expect(try fixture.cache.generations.history("jwks") == [])
        #expect(try fixture.cache.pruner.prune("jwks") == nil)
        #expect(try fixture.reader("other.json") == "other")
        #expect(fixture.cache.space.usage.bytes == 5)
        let again = try CacheFixture(try fixture.directory.copied())
        // In a copy of the directory, the other pipeline has another file.
        #expect(again.report.pipelines.map(\.pipeline) == ["other"])
        #expect(try again.cache.checker.examine("jwks").findings == [])
    }

    @Test("starts again if the pipeline is configured again; another pipeline may own its file meanwhile")
    func again() throws {
        let fixture = try makeFixture()
        _ = try fixture.cache.pruner.prune("jwks")
        let heir = CacheDestination(pipeline: "heir", file: "jwks.json")
        #expect(try fixture.commit("heir", to: heir).generation.number == 1)
        _ = try fixture.cache.pruner.prune("heir")
        let new = try fixture.commit("new", validators: [.tag("3")])
        #expect(new.generation.number == 1)
        #expect(try fixture.reader() == "new")
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("3"))
    }

    @Test("is removed, but not files that are being written under its name")
    func living() throws {
        let fixture = try makeFixture()
        let pending = try fixture.cache.begin(.jwks)
        try pending.write(Array("new".utf8))
        _ = try fixture.cache.pruner.prune("jwks")
        #expect(try pending.commit(at: WallTime(seconds: 9)).generation.number == 1)
        #expect(try fixture.reader() == "new")
        #expect(try fixture.cache.current("jwks")?.number == 1)
    }

    @Test("is removed, but foreign files in its place are moved aside")
    func strays() throws {
        let fixture = try makeFixture()
        let directory = fixture.directory
        let reader = directory.cache + "/current/jwks.json"
        #expect(unlink(reader) == 0)
        try TemporaryDirectory.write(Array("mine".utf8), to: reader)
        try TemporaryDirectory.write(Array("mine".utf8), to: directory.path + "/outside")
        #expect(symlink(directory.path + "/outside", directory.cache + "/generations/jwks/link") == 0)
        _ = try fixture.cache.pruner.prune("jwks")
        #expect(try fixture.names("generations") == ["other"])
        #expect(try fixture.names("current") == ["other.json"])
        #expect(try fixture.names("strays").map { $0.drop { $0 != "-" } } == ["-jwks.json", "-link"])
        #expect(try TemporaryDirectory.read(directory.path + "/outside") == Array("mine".utf8))
    }

    @Test("after a crash or failure is complete or belongs to no pipeline, and is removed the next time")
    func crashes() throws {
        var number = 1
        while true {
            for isCrash in [true, false] {
                let files = FailingFileSystem()
                let fixture = try makeFixture(files)
                files.arm(isCrash ? .stop(at: number) : .fail(at: number, errno: EIO))
                _ = try? fixture.cache.pruner.prune("jwks")
                let calls = files.calls
                files.arm(.nothing)
                guard calls.count >= number else {
                    #expect(number > 8)
                    return
                }
                let situation: Comment = "call \(number), \(calls[number - 1])"
                let again = try CacheFixture(try fixture.directory.copied())
                let left = try again.cache.current("jwks")
                #expect(try again.readerIfAny() == (left == nil ? nil : "three"), situation)
                if left != nil {
                    #expect(
                        try again.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("2"), situation)
                }
                _ = try again.cache.pruner.prune("jwks")
                #expect(try again.names("current") == ["other.json"], situation)
                #expect(try again.names("generations") == ["other"], situation)
                #expect(try again.cache.pruner.holdings(besides: ["other"]) == [], situation)
                #expect(try again.reader("other.json") == "other", situation)
            }
            number += 1
        }
    }
}
