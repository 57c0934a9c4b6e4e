import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

/// Backups and other programs may make hard links to the file of a generation.
@Suite("A generation whose file has further hard links")
struct FurtherLinkTests {
    /// The change of the name that readers use.
    enum Deed: String, CaseIterable, Sendable {
        case removed, movedAside, replaced, replacedByLink

        func perform(on directory: TemporaryDirectory) throws {
            let copy = directory.cache + "/current/jwks.json"
            switch self {
            case .removed: try #require(unlink(copy) == 0)
            case .movedAside: try #require(rename(copy, directory.cache + "/current/zz") == 0)
            case .replaced:
                try #require(unlink(copy) == 0)
                try TemporaryDirectory.write(Array("theirs".utf8), to: copy)
            case .replacedByLink:
                try #require(unlink(copy) == 0)
                try #require(symlink("/dev/null", copy) == 0)
            }
        }
    }

    struct Scene: Sendable, CustomTestStringConvertible {
        var deed: Deed
        var keep: Int
        var isPinned: Bool
        var hasLink = true

        var testDescription: String {
            "\(deed), keep: \(keep)\(isPinned ? ", pinned" : "")\(hasLink ? "" : ", no further link")"
        }

        static let all = Deed.allCases.flatMap { deed in
            [1, 5].flatMap { keep in
                [false, true].map { Scene(deed: deed, keep: keep, isPinned: $0) }
            } + [Scene(deed: deed, keep: 5, isPinned: false, hasLink: false)]
        }

        /// Two generations; the newer one has a further hard link.
        func commit(_ fixture: CacheFixture) throws {
            var destination = CacheDestination.jwks
            destination.keep = keep
            try fixture.commit("older", to: destination, at: 1)
            try fixture.commit("current", to: destination, validators: [.tag("current")], at: 2)
            if isPinned { _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 3)) }
            let copy = fixture.directory.cache + "/current/jwks.json"
            if hasLink { try #require(link(copy, fixture.directory.path + "/backup") == 0) }
        }

        func check(_ fixture: CacheFixture) throws {
            let current = try fixture.cache.current("jwks")
            #expect(current?.number == 2)
            #expect((current?.pinnedSince != nil) == isPinned)
            #expect(try fixture.reader() == "current")
            #expect(try fixture.names("generations/jwks").count == min(keep, 2))
            #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("current"))
        }
    }

    @Test("is published again by a start", arguments: Scene.all)
    func start(scene: Scene) throws {
        let directory = try TemporaryDirectory.forCache()
        do { try scene.commit(try CacheFixture(directory)) }
        try scene.deed.perform(on: directory)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "jwks", repairs: [.restored(2)])])
        try scene.check(fixture)
    }

    @Test("is published again by a repair", arguments: Scene.all)
    func repair(scene: Scene) throws {
        let fixture = try CacheFixture()
        try scene.commit(fixture)
        try scene.deed.perform(on: fixture.directory)
        let kind: CacheFinding.Kind = [.removed, .movedAside].contains(scene.deed) ? .copyMissing : .copyDamaged
        #expect(try fixture.cache.checker.examine("jwks").findings.map(\.kind) == [kind])
        _ = try fixture.cache.checker.examineStrays(repairs: true)
        #expect(try fixture.cache.checker.examine("jwks", repairs: true).findings.map(\.isRepaired) == [true])
        try scene.check(fixture)
        #expect(try fixture.names("current") == ["jwks.json"])
        #expect(
            try fixture.cache.checker.examine("jwks").findings + fixture.cache.checker.examineStrays().findings == [])
    }

    @Test("is not published again if its content was changed through another link: the newest undamaged one is")
    func damaged() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let scene = Scene(deed: .removed, keep: 5, isPinned: false)
            try scene.commit(try CacheFixture(directory))
            try scene.deed.perform(on: directory)
        }
        try TemporaryDirectory.write(Array("CURRENT".utf8), to: directory.path + "/backup")
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines.first?.repairs.first == .restored(1))
        #expect(try fixture.reader() == "older")
    }

    @Test("renamed to another pipeline's file is published again by its own name, and so is the other's")
    func exchanged() throws {
        let directory = try TemporaryDirectory.forCache()
        let other = CacheDestination(pipeline: "other", file: "other.json")
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("current")
            try fixture.commit("theirs", to: other)
        }
        #expect(rename(directory.cache + "/current/jwks.json", directory.cache + "/current/other.json") == 0)
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines.map(\.repairs) == [[.restored(1)], [.restored(1)]])
        #expect(try fixture.reader() == "current")
        #expect(try fixture.reader("other.json") == "theirs")
    }
}

@Suite("After a run without new content")
struct CopyRestorationTests {
    @Test(
        "the copy is found, or restored if its file was removed or replaced",
        arguments: FurtherLinkTests.Deed.allCases)
    func restored(deed: FurtherLinkTests.Deed) throws {
        let fixture = try CacheFixture()
        try fixture.commit("older", at: 1)
        let generation = try fixture.commit("current", at: 2).generation
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .found)
        try deed.perform(on: fixture.directory)
        guard case .restored(let again) = try fixture.cache.withdrawals.restoreCopy(of: "jwks") else {
            Issue.record("not put back")
            return
        }
        #expect(again.number == generation.number)
        #expect(again.revision > generation.revision)
        #expect(try fixture.reader() == "current")
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .found)
    }

    @Test("a copy without an undamaged file is lost, and no older generation takes its place")
    func lost() throws {
        let fixture = try CacheFixture()
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .lost)
        try fixture.commit("older", at: 1)
        try fixture.commit("current", at: 2)
        try TemporaryDirectory.write(Array("EDITED!".utf8), to: fixture.directory.cache + "/current/jwks.json")
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .lost)
        #expect(try fixture.names("generations/jwks").count == 2)
        #expect(try fixture.cache.current("jwks") == nil)
        TemporaryDirectory.remove(fixture.directory.cache)
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .lost)
    }

    @Test("a withdrawn copy stays withdrawn, and a copy with a new name is not restored under that name")
    func others() throws {
        let fixture = try CacheFixture()
        try fixture.commit("current")
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 2))
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .found)
        #expect(try fixture.readerIfAny() == nil)
        try fixture.commit("current", at: 3)
        try fixture.cache.ownership.assign([("jwks", "keys.json")])
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .lost)
        #expect(try fixture.names("current") == ["jwks.json"])
        // Even if the former name, by which readers know it, was removed.
        #expect(unlink(fixture.directory.cache + "/current/jwks.json") == 0)
        #expect(try fixture.cache.withdrawals.restoreCopy(of: "jwks") == .lost)
        #expect(try fixture.names("current").isEmpty)
    }

    @Test("the link to several files is restored")
    func several() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        for name in ["catalogue", "catalogue.stamp"] {
            #expect(unlink(fixture.directory.cache + "/current/" + name) == 0)
        }
        guard case .restored = try fixture.cache.withdrawals.restoreCopy(of: "shop") else {
            Issue.record("not put back")
            return
        }
        try fixture.checkSet(["one"], "")
    }
}
