import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A foreign object in the state directory")
struct StateStrayTests {
    enum Thing: String, CaseIterable, Sendable {
        case directory, fifo, link, socket

        var kind: String { self == .fifo ? "a FIFO" : self == .link ? "a symbolic link" : "a \(rawValue)" }

        func make(at path: String) throws {
            TemporaryDirectory.remove(path)
            unlink(path)
            switch self {
            case .directory:
                try #require(mkdir(path, 0o700) == 0)
                try TemporaryDirectory.write(Array("theirs".utf8), to: path + "/theirs")
            case .fifo: try #require(mkfifo(path, 0o600) == 0)
            case .link: try #require(symlink("/dev/zero", path) == 0)
            case .socket: try #require(mknod(path, S_IFSOCK | 0o600, 0) == 0)
            }
        }
    }

    private func closed() throws -> TemporaryDirectory {
        let fixture = try CacheFixture()
        try fixture.commit("older", at: 1)
        try fixture.commit("current", at: 2)
        return fixture.directory
    }

    private func strays(_ directory: TemporaryDirectory) throws -> [String] {
        try LinuxFileSystem().list(directory.state).map(\.name).filter { $0.contains(".stray-") }.sorted()
    }

    @Test(
        "in the place of the index is moved aside, and the index is made from the files",
        arguments: Thing.allCases)
    func index(thing: Thing) throws {
        let directory = try closed()
        try thing.make(at: directory.state + "/index.sqlite")
        let fixture = try CacheFixture(directory)
        let stray = try #require(try strays(directory).first)
        #expect(stray.hasPrefix("index.sqlite.stray-"))
        #expect(fixture.report.index == .rebuilt(movedTo: directory.state + "/" + stray, reason: "it is \(thing.kind)"))
        #expect(fixture.report.strays.isEmpty, "it is named once")
        #expect(try fixture.reader() == "current")
        #expect(try fixture.commit("next").generation.number == 3)
    }

    @Test(
        "in the place of the lock or of a file of SQLite is moved aside and reported",
        arguments: ["lock", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite-journal", "index.sqlite.damaged"],
        Thing.allCases)
    func others(name: String, thing: Thing) throws {
        let directory = try closed()
        let path = directory.state + "/" + name
        try thing.make(at: path)
        do {
            let fixture = try CacheFixture(directory)
            let stray = try #require(try strays(directory).first)
            #expect(
                fixture.report.strays
                    == [StateStray(path: path, kind: thing.kind, movedTo: directory.state + "/" + stray)])
            #expect(fixture.report.index == .opened)
            #expect(try fixture.cache.current("jwks")?.number == 2)
            #expect(try fixture.commit("next").generation.number == 3)
        }
        #expect(try CacheFixture(directory).report == RecoveryReport(index: .opened))
        if thing == .directory {
            let kept = try #require(try strays(directory).first)
            #expect(try TemporaryDirectory.read(directory.state + "/\(kept)/theirs") == Array("theirs".utf8))
        }
    }

    @Test("in the place of a directory is moved aside; a directory is not")
    func directories() throws {
        let directory = try closed()
        try TemporaryDirectory.write([1], to: directory.state + "/checks")
        #expect(mkdir(directory.state + "/hooks", 0o700) == 0)
        let (_, report) = try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state, directories: ["checks", "hooks", "none"])
        #expect(report.strays.map(\.path) == [directory.state + "/checks"])
        #expect(report.strays.first?.kind == "a file")
        #expect(try LinuxFileSystem().list(directory.state).map(\.name).contains("hooks"))
    }

    @Test("in the place of a held lock does not let a second process use the directory")
    func locked() throws {
        let fixture = try CacheFixture()
        let lock = fixture.directory.state + "/lock"
        for thing in Thing.allCases {
            try thing.make(at: lock)
            let error = #expect(throws: CacheError.self) { try CacheFixture(fixture.directory) }
            #expect(error == .stateLocked(directory: fixture.directory.state, holder: nil))
        }
        TemporaryDirectory.remove(lock)
        unlink(lock)
        #expect(throws: CacheError.stateLocked(directory: fixture.directory.state, holder: nil)) {
            try CacheFixture(fixture.directory)
        }
    }

    @Test(
        "is found by an examination without the daemon, and moved aside by its repair",
        arguments: ["lock", "index.sqlite", "index.sqlite-wal"])
    func examined(name: String) throws {
        let directory = try closed()
        let path = directory.state + "/" + name
        try Thing.directory.make(at: path)
        let found = try LocalCache.openToExamine(
            cacheDirectory: directory.cache, stateDirectory: directory.state, repairs: false)
        #expect(found.cache == nil)
        #expect(found.examination.findings.map(\.path) == [path])
        #expect(found.examination.findings.map(\.detail) == ["it is a directory"])
        #expect(try strays(directory).isEmpty)
        do {
            let repaired = try LocalCache.openToExamine(
                cacheDirectory: directory.cache, stateDirectory: directory.state, repairs: true)
            #expect(repaired.cache != nil)
            #expect(repaired.examination.findings.map(\.isRepaired) == [true])
        }
        #expect(try strays(directory).count == 1)
        #expect(try CacheFixture(directory).reader() == "current")
    }

    @Test("that is a directory in the place of the published file is moved aside by the next commit")
    func inTheWay() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", at: 1)
        let copy = fixture.directory.cache + "/current/jwks.json"
        try Thing.directory.make(at: copy)
        try fixture.commit("two", at: 2)
        #expect(try fixture.reader() == "two")
        let stray = try #require(try fixture.names("strays").first)
        let theirs = fixture.directory.cache + "/strays/\(stray)/theirs"
        #expect(try TemporaryDirectory.read(theirs) == Array("theirs".utf8))
        try Thing.directory.make(at: copy)
        guard case .restored = try fixture.cache.withdrawals.restoreCopy(of: "jwks") else {
            Issue.record("the copy was not restored")
            return
        }
        #expect(try fixture.reader() == "two")
    }

    @Test("that is a directory and cannot be moved aside fails the commit, which names it and the remedy")
    func remedy() {
        let error = SystemCallError(call: "rename", path: "/c/current/jwks.json", errno: EISDIR)
        #expect(error.description.hasPrefix("rename /c/current/jwks.json: "))
        #expect(error.description.hasSuffix("; a directory is in the place of a file of the cache; move it away"))
    }
}
