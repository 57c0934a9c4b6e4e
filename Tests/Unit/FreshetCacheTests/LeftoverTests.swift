import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("What several files leave behind")
struct LeftoverTests {
    private func destination(_ link: String, of pipeline: String = "shop") -> CacheDestination {
        var destination = CacheDestination(pipeline: pipeline, file: link + ".stamp", keep: 2)
        destination.isSet = true
        return destination
    }

    private func expectNothingElse(_ fixture: CacheFixture, _ names: [String], _ situation: Comment = "") throws {
        #expect(try fixture.names("current") == names, situation)
        #expect(try fixture.cache.examineStrays().findings == [], situation)
    }

    @Test("goes with the next commit, however often they had another name meanwhile", arguments: [false, true])
    func renamedAgain(restarts: Bool) throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commitSet("one", at: 1)
            for name in ["wares", "goods"] { try fixture.cache.assign([("shop", name + ".stamp")], sets: ["shop"]) }
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

    @Test("goes with the next commit too where they came back to the name from before, or became one file")
    func renamedBack() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        for name in ["wares", "catalogue"] { try fixture.cache.assign([("shop", name + ".stamp")], sets: ["shop"]) }
        try fixture.commitSet("two", at: 2)
        try expectNothingElse(fixture, ["catalogue", "catalogue.stamp"])
        try fixture.cache.assign([("shop", "wares.stamp")], sets: ["shop"])
        try fixture.cache.assign([("shop", "goods")])
        try fixture.commit("three", to: CacheDestination(pipeline: "shop", file: "goods"), at: 3)
        try expectNothingElse(fixture, ["goods"])
        #expect(try fixture.names("sets").isEmpty)
    }

    @Test("is remembered of so many names, the oldest of them, and what stays then is found by an examination")
    func limit() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        for number in 0...CacheLimits.formerLinks {
            try fixture.cache.assign([("shop", "name-\(number).stamp")], sets: ["shop"])
        }
        let row = try fixture.cache.withIndex { (index) throws(SQLiteError) in try index.ensurePipeline("shop") }
        #expect(row.formerSets.count == CacheLimits.formerLinks && row.formerSets.first == "catalogue")
        try fixture.commit(SeenSet.bundle("two"), to: destination("name-\(CacheLimits.formerLinks)"), at: 2)
        #expect(try fixture.names("current").count == 2)
    }

    @Test("of a pipeline whose name another one was given goes when it has another, or with it")
    func lost() throws {
        for isPruned in [true, false] {
            let fixture = try CacheFixture()
            try fixture.commitSet("one", at: 1)
            let heir = CacheDestination(pipeline: "heir", file: "catalogue")
            try fixture.cache.assign([("heir", "catalogue")])
            #expect(try fixture.seen == .of("one"))
            try fixture.commit("mine", to: heir, at: 2)
            if isPruned {
                #expect(try fixture.cache.prune("shop") != nil)
                try expectNothingElse(fixture, ["catalogue"])
                #expect(try fixture.names("sets").isEmpty)
            } else {
                try fixture.cache.assign([("heir", "catalogue"), ("shop", "wares.stamp")], sets: ["shop"])
                try fixture.commit(SeenSet.bundle("two"), to: destination("wares"), at: 3)
                try expectNothingElse(fixture, ["catalogue", "wares", "wares.stamp"])
            }
            #expect(try fixture.reader("catalogue") == "mine")
        }
    }

    @Test("does not go with what somebody else has put in its place")
    func theirs() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.cache.assign([("shop", "wares.stamp")], sets: ["shop"])
        let link = fixture.directory.cache + "/current/catalogue"
        #expect(unlink(link) == 0)
        #expect(symlink("/etc", link) == 0)
        try fixture.commit(SeenSet.bundle("two"), to: destination("wares"), at: 2)
        #expect(try fixture.names("current") == ["catalogue", "wares", "wares.stamp"])
        #expect(try fixture.cache.examineStrays().findings.map(\.path) == [link])
    }

    @Test("and what a check refused of them, goes with the change to one file")
    func refused() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.refuseSet("bad")
        #expect(try fixture.names("generations/shop").count == 2)
        try fixture.cache.assign([("shop", "catalogue")])
        #expect(try fixture.names("generations/shop").isEmpty)
        #expect(fixture.cache.usage.bytes == 0)
    }

    @Test("by a removal that was stopped or failed at any call is all there or nobody's, and goes the next time")
    func pruned() throws {
        var number = 1
        // What is found where: nothing has gone, or the directories have and the generations have not.
        var pictures: Set<[Bool]> = []
        while true {
            for isCrash in [true, false] {
                let files = FaultyFileSystem()
                let fixture = try CacheFixture(fileSystem: files)
                for (offset, text) in ["one", "two"].enumerated() { try fixture.commitSet(text, at: Int64(offset)) }
                files.arm(isCrash ? .stop(at: number) : .fail(at: number, errno: EIO))
                _ = try? fixture.cache.prune("shop")
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
                // By the generations alone it is found again.
                #expect(hasGenerations || !hasSets, situation)
                let again = try CacheFixture(try fixture.directory.copied())
                if try again.cache.current("shop") != nil { try again.checkSet(["two"], situation) }
                for fixture in [fixture, again] {
                    if hasGenerations {
                        #expect(try fixture.cache.holdings(besides: []).map(\.pipeline) == ["shop"], situation)
                    }
                    _ = try fixture.cache.prune("shop")
                    try expectNothingElse(fixture, [], situation)
                    #expect(try fixture.names("sets").isEmpty && fixture.names("generations").isEmpty, situation)
                }
            }
            number += 1
        }
    }
}
