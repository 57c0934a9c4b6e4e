import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("Several files of one pipeline")
struct SetTests {
    private func path(_ fixture: CacheFixture, _ rest: String) -> String { fixture.directory.cache + "/" + rest }

    @Test("are in one directory, to which a link leads, next to a stamp with all of them")
    func committed() throws {
        let fixture = try CacheFixture()
        let outcome = try fixture.commitSet("one")
        guard case .changed(let generation) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(try fixture.seen == .of("one"))
        #expect(try fixture.reader("catalogue.stamp") == SeenSet.bundle("one"))
        #expect(generation.path == path(fixture, "current/catalogue.stamp"))
        #expect(generation.directory == path(fixture, "current/catalogue"))
        try fixture.checkSet(["one"], "")
        #expect(try TemporaryDirectory.mode(path(fixture, "sets")) == 0o711)
        #expect(try TemporaryDirectory.mode(path(fixture, "sets/shop")) == 0o711)
        let name = try #require(try fixture.names("sets/shop").first)
        #expect(name.hasPrefix("1-"))
        let directory = path(fixture, "sets/shop/" + name)
        #expect(try TemporaryDirectory.mode(directory) == 0o755)
        #expect(try TemporaryDirectory.mode(directory + "/a.txt") == 0o644)
    }

    @Test("are in a directory whose name, which every user can read, does not reveal the content")
    func concealed() throws {
        let directory = try TemporaryDirectory.forCache()
        var target: String?
        do {
            let fixture = try CacheFixture(directory)
            let generation = try fixture.commitSet("one").generation
            target = try fixture.target
            let name = try #require(target?.split(separator: "/").last)
            #expect(StoredContent(name: String(name))?.number == 1)
            #expect(!name.contains(generation.digest.description))
            // The directory of the same content of another pipeline or another cache has another name.
            let other = try CacheFixture()
            try other.commitSet("one")
            #expect(try other.target != target)
        }
        let again = try CacheFixture(directory)
        #expect(again.report == RecoveryReport(index: .opened))
        #expect(try again.target == target, "it is the same after a restart")
    }

    @Test("in a directory that is named by the digest, as in earlier versions, are in another one after a start")
    func named() throws {
        let directory = try TemporaryDirectory.forCache()
        let link = directory.cache + "/current/catalogue"
        var former = ""
        do {
            let fixture = try CacheFixture(directory)
            let generation = try fixture.commitSet("one", at: 1).generation
            former = "1-\(generation.digest)"
            let name = try #require(try fixture.names("sets/shop").first)
            #expect(rename(path(fixture, "sets/shop/" + name), path(fixture, "sets/shop/" + former)) == 0)
            #expect(unlink(link) == 0)
            #expect(symlink("../sets/shop/" + former, link) == 0)
        }
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines == [PipelineRecovery(pipeline: "shop", repairs: [.shown(1)])])
        try fixture.checkSet(["one"], "")
        try fixture.commitSet("two", at: 2)
        #expect(!(try fixture.names("sets/shop").contains(former)))
    }

    @Test("switch together, stay for old readers until the commit after the next, and end with their generation")
    func kept() throws {
        let fixture = try CacheFixture()
        var destination = CacheDestination.catalogue
        destination.keep = 1
        var directories: [String] = []
        for number in 1...4 {
            try fixture.commit(SeenSet.bundle("\(number)"), to: destination, at: Int64(number))
            directories.append(try #require(try fixture.target))
            #expect(try fixture.seen == .of("\(number)"))
            let before = directories.suffix(2).dropLast().first
            if let before {
                #expect(try SeenSet(at: path(fixture, "current/" + before)) == .of("\(number - 1)"))
            }
            #expect(try fixture.names("sets/shop").count == min(number, 2))
        }
    }

    @Test("without changes are not touched, nor is the link")
    func unchanged() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        let before = try #require(try LinuxFileSystem().status(path(fixture, "current/catalogue")))
        guard case .unchanged = try fixture.commitSet("one") else {
            Issue.record("changed")
            return
        }
        #expect(try LinuxFileSystem().status(path(fixture, "current/catalogue")) == before)
    }

    @Test("have the mode of the copy, also after the configuration changes it")
    func access() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        var destination = CacheDestination.catalogue
        destination.mode = 0o640
        try fixture.cache.setAccess(destination)
        for file in ["current/catalogue.stamp", "current/catalogue/a.txt", "current/catalogue/b.json"] {
            #expect(try TemporaryDirectory.mode(path(fixture, file)) == 0o640, "\(file)")
        }
        try fixture.checkSet(["one"], "")
    }

    /// The modes of all files that readers can find.
    private func modes(_ fixture: CacheFixture) throws -> [String: UInt32] {
        var modes = ["stamp": try TemporaryDirectory.mode(path(fixture, "current/catalogue.stamp"))]
        for directory in try fixture.names("sets/shop") {
            for file in try fixture.names("sets/shop/" + directory) {
                let mode = try TemporaryDirectory.mode(path(fixture, "sets/shop/\(directory)/\(file)"))
                modes["\(directory.prefix(1))/\(file)"] = mode
            }
        }
        return modes
    }

    @Test("get a narrower mode in all generations, by the change alone, new content, and a rollback")
    func narrowed() throws {
        for deed in ["change", "unchanged", "new", "rollback", "lost"] {
            let fixture = try CacheFixture()
            var destination = CacheDestination.catalogue
            try fixture.commitSet("one", at: 1)
            try fixture.commitSet("two", at: 2)
            destination.mode = 0o640
            switch deed {
            case "change": try fixture.cache.setAccess(destination)
            case "unchanged": try fixture.commit(SeenSet.bundle("two"), to: destination, at: 3)
            case "new": try fixture.commit(SeenSet.bundle("three"), to: destination, at: 3)
            case "rollback": _ = try fixture.cache.generations.rollBack(destination, to: nil)
            default:
                #expect(unlink(path(fixture, "current/catalogue.stamp")) == 0)
                try fixture.commit(SeenSet.bundle("three"), to: destination, at: 3)
            }
            let modes = try modes(fixture)
            #expect(modes.count >= 5 && modes.values.allSatisfy { $0 == 0o640 }, "\(deed): \(modes)")
            #expect(try fixture.cache.checker.examine("shop").findings == [])
        }
    }

    @Test("get a wider mode only in the directory that the link leads to")
    func widened() throws {
        let fixture = try CacheFixture()
        var destination = CacheDestination.catalogue
        destination.mode = 0o600
        for (offset, text) in ["one", "two"].enumerated() {
            try fixture.commit(SeenSet.bundle(text), to: destination, at: Int64(offset))
        }
        destination.mode = 0o644
        try fixture.cache.setAccess(destination)
        #expect(
            try modes(fixture) == [
                "stamp": 0o644, "2/a.txt": 0o644, "2/b.json": 0o644, "1/a.txt": 0o600, "1/b.json": 0o600,
            ])
        try fixture.checkSet(["two"], "")
        _ = try fixture.cache.generations.rollBack(destination, to: nil)
        #expect(try modes(fixture).values.allSatisfy { $0 == 0o644 })
        try fixture.checkSet(["one"], "")
    }

    @Test("have the new mode after a failure of any call, once the change is repeated")
    func narrowedLate() throws {
        var number = 1
        while true {
            for isCrash in [false, true] {
                let files = FailingFileSystem()
                let fixture = try CacheFixture(fileSystem: files)
                try fixture.commitSet("one", at: 1)
                try fixture.commitSet("two", at: 2)
                var destination = CacheDestination.catalogue
                destination.mode = 0o600
                files.arm(isCrash ? .stop(at: number) : .fail(at: number, errno: EMFILE))
                try? fixture.cache.setAccess(destination)
                let calls = files.calls
                files.arm(.nothing)
                guard calls.count >= number else {
                    #expect(number > 10)
                    return
                }
                let before = try modes(fixture)
                // The stamp is last: if it has the narrow mode, all other files have it too.
                #expect(before["stamp"] != 0o600 || before.values.allSatisfy { $0 == 0o600 }, "\(number): \(before)")
                let again = try CacheFixture(try fixture.directory.copied())
                for fixture in [fixture, again] {
                    try fixture.commit(SeenSet.bundle("two"), to: destination, at: 3)
                    let modes = try modes(fixture)
                    #expect(modes.values.allSatisfy { $0 == 0o600 }, "\(number), \(calls[number - 1]): \(modes)")
                    try fixture.checkSet(["two"], "call \(number)")
                }
            }
            number += 1
        }
    }

    @Test("are restored by a rollback, even if their directory is missing")
    func rollback() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.commitSet("two", at: 2)
        let first = try #require(try fixture.names("sets/shop").first { $0.hasPrefix("1-") })
        TemporaryDirectory.remove(path(fixture, "sets/shop/" + first))
        #expect(try fixture.cache.generations.rollBack(.catalogue, to: nil).generation.number == 1)
        try fixture.checkSet(["one"], "")
    }

    @Test("get their link back, by the next access, if it was removed or leads elsewhere")
    func lostLink() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        let link = path(fixture, "current/catalogue")
        #expect(unlink(link) == 0)
        #expect(try fixture.cache.current("shop") != nil)
        #expect(try fixture.seen == .of("one"))
        #expect(unlink(link) == 0)
        #expect(symlink("/etc", link) == 0)
        try fixture.commitSet("two")
        #expect(try fixture.seen == .of("two"))
        #expect(Glibc.access("/etc/a.txt", F_OK) != 0)
        TemporaryDirectory.remove(path(fixture, "sets"))
        #expect(try fixture.cache.current("shop") != nil)
        try fixture.checkSet(["two"], "")
    }

    @Test("replace a foreign file, and move a foreign directory aside")
    func foreign() throws {
        let fixture = try CacheFixture()
        try TemporaryDirectory.write([1], to: path(fixture, "current/catalogue"))
        try fixture.commitSet("one")
        #expect(try fixture.seen == .of("one"))
        #expect(unlink(path(fixture, "current/catalogue")) == 0)
        #expect(mkdir(path(fixture, "current/catalogue"), 0o755) == 0)
        try TemporaryDirectory.write([1], to: path(fixture, "current/catalogue/theirs"))
        try fixture.commitSet("two")
        try fixture.checkSet(["two"], "")
        let strays = try fixture.names("strays")
        #expect(strays.count == 1)
        #expect(try fixture.names("strays/" + (strays.first ?? "")) == ["theirs"])
    }

    @Test("own both their names exclusively")
    func owned() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        for name in ["catalogue", "catalogue.stamp"] {
            let error = #expect(throws: CacheError.self) {
                _ = try fixture.cache.begin(CacheDestination(pipeline: "other", file: name))
            }
            #expect(error == .fileOwned(file: name, owner: "shop", claimant: "other"))
            #expect(throws: CacheError.self) {
                try fixture.cache.ownership.assign([("shop", "catalogue.stamp"), ("other", name)], sets: ["shop"])
            }
        }
        let other = CacheDestination(pipeline: "other", file: "x", keep: 2)
        try fixture.commit("x", to: other)
        var taking = CacheDestination(pipeline: "third", file: "x.stamp")
        taking.isSet = true
        #expect(throws: CacheError.fileOwned(file: "x", owner: "other", claimant: "third")) {
            _ = try fixture.cache.begin(taking)
        }
    }

    @Test("with the same name are rejected, and the copy stays")
    func noBundle() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        for text in ["[]", "{}", #"{"a":1"#, #"{"../a":1}"#, #"{"a":1,"a":2}"#, #"{"a":1} {"a":2}"#, #"{".a":1}"#, ""] {
            #expect(throws: CacheError.self, "\(text)") { try fixture.commit(text, to: .catalogue) }
        }
        try fixture.checkSet(["one"], "")
    }

    // MARK: Switching

    @Test("replace the pipeline's one file, which is removed")
    func fromOne() throws {
        let fixture = try CacheFixture()
        try fixture.commit("1", to: .single, at: 1)
        try fixture.commit("2", to: .single, at: 2)
        try fixture.cache.ownership.assign([("shop", "catalogue.stamp")], sets: ["shop"])
        // Readers see the file until there is other content; the pipeline cannot publish it.
        #expect(try fixture.reader("catalogue") == "2")
        #expect(try fixture.cache.current("shop") == nil)
        #expect(try fixture.names("generations/shop").isEmpty)
        #expect(try fixture.commitSet("three", at: 3).generation.number == 3)
        try fixture.checkSet(["three"], "")
        #expect(throws: CacheError.self) { try fixture.cache.generations.rollBack(.catalogue, to: 2) }
    }

    @Test("are replaced by one file, and are removed")
    func toOne() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.commitSet("two", at: 2)
        try fixture.cache.ownership.assign([("shop", "catalogue")])
        #expect(try fixture.seen == .of("two"))
        #expect(try fixture.cache.current("shop") == nil)
        #expect(try fixture.commit("3", to: .single, at: 3).generation.number == 3)
        #expect(try fixture.reader("catalogue") == "3")
        #expect(try fixture.names("current") == ["catalogue"])
        #expect(try fixture.names("sets").isEmpty)
        #expect(try fixture.cache.checker.examineStrays().findings.isEmpty)
    }

    @Test("have a new name from the next commit on, and the former name is removed", arguments: [false, true])
    func renamed(restarts: Bool) throws {
        var fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.cache.ownership.assign([("shop", "wares.stamp")], sets: ["shop"])
        #expect(try fixture.seen == .of("one"))
        if restarts {
            let directory = fixture.directory
            fixture = try Self.reopened(directory, consume fixture)
        }
        var destination = CacheDestination.catalogue
        destination.file = "wares.stamp"
        try fixture.commit(SeenSet.bundle("one"), to: destination, at: 2)
        #expect(try fixture.names("current") == ["wares", "wares.stamp"])
        #expect(try SeenSet(at: path(fixture, "current/wares")) == .of("one"))
        #expect(try fixture.cache.checker.examineStrays().findings.isEmpty)
        #expect(try fixture.cache.checker.examine("shop").findings.isEmpty)
    }

    private static func reopened(
        _ directory: TemporaryDirectory, _ before: consuming CacheFixture
    ) throws -> CacheFixture {
        _ = consume before
        return try CacheFixture(directory)
    }

    @Test("are removed with their pipeline, including link and directories")
    func pruned() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.commitSet("two", at: 2)
        #expect(try fixture.cache.pruner.prune("shop")?.generations == 2)
        #expect(try fixture.names("current").isEmpty)
        #expect(try fixture.names("sets").isEmpty)
        #expect(try fixture.cache.checker.examineStrays().findings.isEmpty)
    }

    @Test("that were pinned and became one file hold back nothing; without a commit they end with the pipeline")
    func becameOne() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        _ = try fixture.cache.generations.pin("shop", at: WallTime(seconds: 2))
        try fixture.cache.ownership.assign([("shop", "catalogue")])
        #expect(fixture.cache.space.usage.bytes == 0)
        let again = try CacheFixture(try fixture.directory.copied())
        try again.commit("one", to: CacheDestination(pipeline: "shop", file: "catalogue"), at: 3)
        #expect(try again.reader("catalogue") == "one")
        _ = try fixture.cache.pruner.prune("shop")
        #expect(try fixture.names("current").isEmpty && fixture.names("sets").isEmpty)
    }

    // MARK: Examining

    @Test("are examined with link and directory, and restored from the stamp")
    func examined() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one", at: 1)
        try fixture.commitSet("two", at: 2)
        let directory = path(fixture, "current/catalogue/")
        try TemporaryDirectory.write([1, 2, 3], to: directory + "a.txt")
        #expect(unlink(directory + "b.json") == 0)
        try TemporaryDirectory.write([1], to: directory + "theirs")
        try TemporaryDirectory.write([1], to: path(fixture, "sets/shop/theirs"))
        #expect(mkdir(path(fixture, "sets/shop/.new-77"), 0o755) == 0)
        try TemporaryDirectory.write([1], to: path(fixture, "sets/shop/.new-77/half"))
        #expect(mkdir(path(fixture, "sets/nobody"), 0o755) == 0)
        let found = try fixture.cache.checker.examine("shop").findings.map(\.kind)
        #expect(Dictionary(found.map { ($0, 1) }, uniquingKeysWith: +) == [.setDamaged: 3, .stray: 1, .unfinished: 1])
        #expect(try fixture.cache.checker.examineStrays().findings.map(\.kind) == [.stray])
        let repaired = try fixture.cache.checker.examine("shop", repairs: true)
        #expect(!repaired.findings.contains { !$0.isRepaired }, "\(repaired.findings)")
        #expect(try fixture.cache.checker.examineStrays(repairs: true).findings.map(\.isRepaired) == [true])
        try fixture.checkSet(["two"], "")
        #expect(try fixture.names("strays").count == 3)
    }

    @Test("get their link back by a repair, which moves a foreign file in its place aside")
    func examinedLink() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("one")
        #expect(unlink(path(fixture, "current/catalogue")) == 0)
        try TemporaryDirectory.write([7], to: path(fixture, "current/catalogue"))
        #expect(try fixture.cache.checker.examine("shop").findings.map(\.kind) == [.setDamaged])
        let repaired = try fixture.cache.checker.examine("shop", repairs: true)
        #expect(!repaired.findings.contains { !$0.isRepaired }, "\(repaired.findings)")
        try fixture.checkSet(["one"], "")
        #expect(try fixture.names("strays").count == 1)
    }

    @Test("are all compared by a start that verifies all content")
    func verified() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commitSet("one")
            try TemporaryDirectory.write([1, 2, 3], to: path(fixture, "current/catalogue/a.txt"))
        }
        let fixture = try CacheFixture(directory, verifiesAll: true)
        try fixture.checkSet(["one"], "")
    }
}

@Suite("Several files as one content")
struct FileBundleTests {
    private func files(_ text: String) throws -> [String: String] {
        let bundle = try FileBundle(Array(text.utf8))
        return Dictionary(
            bundle.members.map { ($0.name, String(decoding: bundle.content(of: $0), as: UTF8.self)) }
        ) { first, _ in first }
    }

    @Test("are separated: strings as they are, other values as JSON")
    func parts() throws {
        #expect(
            try files(#" { "a" : "x\"}{\\" , "b":[{"c":"]}"},[]], "c":null,"d":-1.5e3 ,"ä":true} "#) == [
                "a": "x\"}{\\", "b": "[{\"c\":\"]}\"},[]]\n", "c": "null\n", "d": "-1.5e3 \n", "ä": "true\n",
            ])
    }

    @Test("can have every escape of a JSON string")
    func escapes() throws {
        #expect(
            try files(#"{"a":"\b\f\n\r\t\/\"\\\u0041\u00e4\ud83d\ude00 \ud83d \udE00\ud83dx"}"#) == [
                "a": "\u{8}\u{c}\n\r\t/\"\\Aä😀 \u{FFFD} \u{FFFD}\u{FFFD}x"
            ])
    }

    @Test("can be as many as the limit, and not more")
    func limit() throws {
        func text(_ count: Int) -> String {
            "{" + (0..<count).map { "\"\($0)\":1" }.joined(separator: ",") + "}"
        }
        #expect(try files(text(CacheLimits.filesPerSet)).count == CacheLimits.filesPerSet)
        #expect(throws: CacheError.noBundle("it has more than 100 files")) {
            _ = try files(text(CacheLimits.filesPerSet + 1))
        }
    }

    @Test("can be nested to any depth without using stack")
    func depth() throws {
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(try files("{\"a\":\(deep)}")["a"] == deep + "\n")
    }

    @Test("are rejected if the text ends at any earlier point")
    func truncated() throws {
        let whole = #"{"a":"x\"y\\","b":[1,{"c":"d"}]}"#
        for length in 0..<whole.utf8.count {
            #expect(throws: CacheError.self) { _ = try FileBundle(Array(whole.utf8.prefix(length))) }
        }
    }
}
