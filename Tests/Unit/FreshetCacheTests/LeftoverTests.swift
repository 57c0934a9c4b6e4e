import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The old files of a pipeline with several files")
struct LeftoverTests {
    private func destination(_ link: String, of pipeline: String = "shop") -> CacheDestination {
        var destination = CacheDestination(pipeline: pipeline, file: link + ".stamp", keep: 2)
        destination.isSet = true
        return destination
    }

    private func expectNothingElse(_ fixture: CacheFixture, _ names: [String], _ situation: Comment = "") throws {
        #expect(try fixture.names("current") == names, situation)
        #expect(try fixture.cache.checker.examineStrays().findings == [], situation)
    }

    @Test("are removed by the next commit, however often the pipeline was renamed meanwhile", arguments: [false, true])
    func renamedAgain(restarts: Bool) throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commitSet("one", at: 1)
            for name in ["wares", "goods"] {
                try fixture.cache.ownership.assign([("shop", name + ".stamp")], sets: ["shop"])
            }
            #expect(try fixture.seen == .of("one"))
            if !restarts {
                try fixture.commit(SeenSet.bundle("two"), to: destination("goods"), at: 2)
                try expectNothingElse(fixture, ["goods", "goods.stamp"])
            }
        }
        let fixture = try CacheFixture(directory)
        try fixture.commit(SeenSet.bundle("three"), to: destination("goods"), at: 3)
        try expectNothingElse(fixture, ["goods", "goods.stamp"])
    }

    @Test("are removed by the next commit if the pipeline got its old name again, or keeps one file now")
    func renamedBack() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        for name in ["wares", "catalogue"] {
            try fixture.cache.ownership.assign([("shop", name + ".stamp")], sets: ["shop"])
        }
        try fixture.commitSet("two", at: 2)
        try expectNothingElse(fixture, ["catalogue", "catalogue.stamp"])
        try fixture.cache.ownership.assign([("shop", "wares.stamp")], sets: ["shop"])
        try fixture.cache.ownership.assign([("shop", "goods")])
        try fixture.commit("three", to: CacheDestination(pipeline: "shop", file: "goods"), at: 3)
        try expectNothingElse(fixture, ["goods"])
        #expect(try fixture.names("sets").isEmpty)
    }

    @Test("are stored for a limited number of names, the oldest; an examination finds the others")
    func limit() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        for number in 0...CacheLimits.formerLinks {
            try fixture.cache.ownership.assign([("shop", "name-\(number).stamp")], sets: ["shop"])
        }
        let row = try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
            try index.pipelines.ensure("shop")
        }
        #expect(row.formerSets.count == CacheLimits.formerLinks && row.formerSets.first == "catalogue")
        try fixture.commit(SeenSet.bundle("two"), to: destination("name-\(CacheLimits.formerLinks)"), at: 2)
        #expect(try fixture.names("current").count == 2)
    }

    @Test("are removed after another pipeline got the name, with the next commit or with the pipeline")
    func lost() throws {
        for isPruned in [true, false] {
            let fixture = try CacheFixture()
            try fixture.commitSet("one", at: 1)
            let heir = CacheDestination(pipeline: "heir", file: "catalogue")
            try fixture.cache.ownership.assign([("heir", "catalogue")])
            #expect(try fixture.seen == .of("one"))
            try fixture.commit("mine", to: heir, at: 2)
            if isPruned {
                #expect(try fixture.cache.pruner.prune("shop") != nil)
                try expectNothingElse(fixture, ["catalogue"])
                #expect(try fixture.names("sets").isEmpty)
            } else {
                try fixture.cache.ownership.assign([("heir", "catalogue"), ("shop", "wares.stamp")], sets: ["shop"])
                try fixture.commit(SeenSet.bundle("two"), to: destination("wares"), at: 3)
                try expectNothingElse(fixture, ["catalogue", "wares", "wares.stamp"])
            }
            #expect(try fixture.reader("catalogue") == "mine")
        }
    }

    @Test("are not removed if a foreign file is in their place")
    func theirs() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.cache.ownership.assign([("shop", "wares.stamp")], sets: ["shop"])
        let link = fixture.directory.cache + "/current/catalogue"
        #expect(unlink(link) == 0)
        #expect(symlink("/etc", link) == 0)
        try fixture.commit(SeenSet.bundle("two"), to: destination("wares"), at: 2)
        #expect(try fixture.names("current") == ["catalogue", "wares", "wares.stamp"])
        #expect(try fixture.cache.checker.examineStrays().findings.map(\.path) == [link])
    }

    @Test("and their rejected content are removed when the pipeline changes to one file")
    func rejected() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.refuseSet("bad")
        #expect(try fixture.names("generations/shop").count == 2)
        try fixture.cache.ownership.assign([("shop", "catalogue")])
        #expect(try fixture.names("generations/shop").isEmpty)
        #expect(fixture.cache.space.usage.bytes == 0)
    }

    @Test("survive an interrupted removal completely or belong to no pipeline, and are removed the next time")
    func pruned() throws {
        var number = 1
        // Which files remain: all of them, or only the generations without the directories.
        var pictures: Set<[Bool]> = []
        while true {
            for isCrash in [true, false] {
                let files = FailingFileSystem()
                let fixture = try CacheFixture(fileSystem: files)
                for (offset, text) in ["one", "two"].enumerated() { try fixture.commitSet(text, at: Int64(offset)) }
                files.arm(isCrash ? .stop(at: number) : .fail(at: number, errno: EIO))
                _ = try? fixture.cache.pruner.prune("shop")
                let calls = files.calls
                files.arm(.nothing)
                guard calls.count >= number else {
                    #expect(pictures.contains([true, true]) && pictures.contains([false, true]))
                    return
                }
                let situation: Comment = "call \(number), \(calls[number - 1])"
                let hasSets = !(try fixture.names("sets").isEmpty)
                let hasGenerations = !(try fixture.names("generations").isEmpty)
                pictures.insert([hasSets, hasGenerations])
                // The pipeline is found again by its generations alone.
                #expect(hasGenerations || !hasSets, situation)
                let again = try CacheFixture(try fixture.directory.copied())
                if try again.cache.current("shop") != nil { try again.checkSet(["two"], situation) }
                for fixture in [fixture, again] {
                    if hasGenerations {
                        #expect(try fixture.cache.pruner.holdings(besides: []).map(\.pipeline) == ["shop"], situation)
                    }
                    _ = try fixture.cache.pruner.prune("shop")
                    try expectNothingElse(fixture, [], situation)
                    #expect(try fixture.names("sets").isEmpty && fixture.names("generations").isEmpty, situation)
                }
            }
            number += 1
        }
    }
}
