import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A symbolic link in the place of a directory of the cache")
struct ForeignLinkTests {
    private let directory: TemporaryDirectory
    /// A foreign directory elsewhere, with a file in it.
    private let outside: String

    init() throws {
        directory = try TemporaryDirectory.forCache()
        outside = directory.path + "/outside"
        try #require(mkdir(outside, 0o755) == 0)
        try TemporaryDirectory.write(Array("mine".utf8), to: outside + "/theirs")
    }

    private func lead(_ name: String) throws {
        try #require(symlink(outside, directory.cache + "/" + name) == 0)
    }

    private func expectUntouched() throws {
        #expect(try LinuxFileSystem().list(outside).map(\.name) == ["theirs"])
        #expect(try TemporaryDirectory.read(outside + "/theirs") == Array("mine".utf8))
    }

    /// The names of the objects that were moved aside, without the inodes before them.
    private func strays(_ fixture: CacheFixture) throws -> [String] {
        try fixture.names("strays").map { String($0.drop { $0 != "-" }.dropFirst()) }.sorted()
    }

    @Test("is not listed as a directory")
    func listed() throws {
        let link = directory.path + "/link"
        #expect(symlink(outside, link) == 0)
        #expect(try LinuxFileSystem().list(link).isEmpty)
        #expect(try LinuxFileSystem().list(outside).count == 1)
    }

    @Test("named like an unfinished directory or that of a generation is moved aside; its target stays")
    func unfinished() throws {
        let generation = StoredContent(
            number: 77, digest: try #require(ContentDigest(hexadecimal: String(repeating: "a", count: 64))))
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commitSet("one", at: 1)
            try lead("sets/shop/\(generation.name)")
            try fixture.commitSet("two", at: 2)
            try expectUntouched()
            #expect(try strays(fixture) == [generation.name])
            // The temporary name that the next process uses first.
            for token in 1...9 { try lead("sets/shop/.new-\(token)") }
        }
        let fixture = try CacheFixture(directory)
        try expectUntouched()
        #expect(try strays(fixture).count == 10)
        try fixture.commitSet("three", at: 3)
        try fixture.checkSet(["three"], "")
        try expectUntouched()
    }

    @Test(
        "in the place of the directory of the next generation, or of one to repair, is moved aside", arguments: [1, 2])
    func ofGeneration(commits: Int) throws {
        let fixture = try CacheFixture(directory)
        try fixture.commitSet("one", at: 1)
        let name = try #require(try fixture.names("sets/shop").first)
        TemporaryDirectory.remove(directory.cache + "/sets/shop/" + name)
        try lead("sets/shop/\(name)")
        #expect(try fixture.cache.checker.examine("shop").findings.map(\.kind) == [.setDamaged])
        for text in ["one", "two"].prefix(commits) { try fixture.commitSet(text, at: 2) }
        try expectUntouched()
        #expect(try fixture.cache.current("shop") != nil)
        try fixture.checkSet(["one", "two"], "")
        #expect(try strays(fixture) == [name])
    }

    @Test("in the place of a pipeline's directories is found; a repair, a commit and a query move it aside")
    func ofPipeline() throws {
        let fixture = try CacheFixture(directory)
        let sets = directory.cache + "/sets/shop"
        try fixture.commitSet("one", at: 1)
        func replace() throws {
            // The target looks like the pipeline's own directory.
            TemporaryDirectory.remove(outside)
            #expect(rename(sets, outside) == 0)
            try TemporaryDirectory.write(Array("mine".utf8), to: outside + "/theirs")
            try lead("sets/shop")
        }
        func expectLeft() throws {
            #expect(try TemporaryDirectory.read(outside + "/theirs") == Array("mine".utf8))
            #expect(try LinuxFileSystem().list(outside).count == 2)
            #expect(try LinuxFileSystem().status(sets)?.isDirectory == true)
        }
        try replace()
        #expect(try fixture.cache.checker.examineStrays().findings.map(\.path) == [sets])
        #expect(!(try fixture.cache.checker.examine("shop").findings.contains { $0.path.hasSuffix("theirs") }))
        #expect(try fixture.cache.checker.examineStrays(repairs: true).findings.map(\.isRepaired) == [true])
        #expect(!(try fixture.cache.checker.examine("shop", repairs: true).findings.contains { !$0.isRepaired }))
        try expectLeft()
        try fixture.checkSet(["one"], "")
        try replace()
        try fixture.commitSet("two", at: 2)
        try fixture.checkSet(["two"], "")
        try replace()
        #expect(try fixture.cache.current("shop") != nil)
        try fixture.checkSet(["two"], "")
        try replace()
        #expect(try fixture.cache.pruner.prune("shop") != nil)
        #expect(try fixture.names("sets").isEmpty)
        #expect(try LinuxFileSystem().list(outside).contains { $0.name == "theirs" })
    }

    @Test("in the place of a pipeline's generations prevents writing there, and the error names it")
    func ofGenerations() throws {
        let fixture = try CacheFixture(directory)
        try lead("generations/jwks")
        let error = #expect(throws: CacheError.self) { try fixture.commit("one") }
        #expect("\(try #require(error))".contains("a symbolic link is in the place of a directory"))
        try expectUntouched()
        #expect(!(try fixture.cache.checker.examineStrays(repairs: true).findings.contains { !$0.isRepaired }))
        try fixture.commit("one")
        #expect(try fixture.reader() == "one")
        try expectUntouched()
        // The content there is not read either.
        let generations = directory.cache + "/generations/jwks"
        let name = try #require(try fixture.names("generations/jwks").first)
        TemporaryDirectory.remove(generations)
        try lead("generations/jwks")
        try TemporaryDirectory.write(Array("two".utf8), to: outside + "/" + name)
        #expect(throws: CacheError.self) { try fixture.cache.content(of: "jwks", limit: 100) }
    }
}
