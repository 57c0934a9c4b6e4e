import FreshetModel
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// An operation of a pipeline that is changed from several files to one file, or the reverse, meanwhile.
struct Switch: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// Whether the pipeline kept several files before.
    var hasSeveral: Bool
    var deed: @Sendable (CacheFixture) throws -> Void

    var before: CacheDestination { hasSeveral ? .catalogue : .single }
    var after: CacheDestination { hasSeveral ? .single : .catalogue }

    static let all = [true, false].flatMap { several in
        let name = several ? "several" : "one"
        return [
            Switch(testDescription: "a commit of \(name)", hasSeveral: several) {
                try $0.commit(text("new", several), to: several ? .catalogue : .single, at: 9)
            },
            Switch(testDescription: "a commit of \(name) that is unchanged", hasSeveral: several) {
                var destination = several ? CacheDestination.catalogue : .single
                destination.mode = 0o640
                try $0.commit(text("old", several), to: destination, at: 9)
            },
            Switch(testDescription: "a rollback of \(name)", hasSeveral: several) {
                _ = try $0.cache.generations.rollBack(several ? .catalogue : .single, to: nil)
            },
            Switch(testDescription: "a pin of \(name)", hasSeveral: several) {
                _ = try $0.cache.generations.pin("shop", at: WallTime(seconds: 9))
            },
            Switch(testDescription: "a rejection of \(name)", hasSeveral: several) {
                let pending = try $0.cache.begin(several ? .catalogue : .single)
                try pending.write(Array(text("bad", several).utf8))
                _ = try pending.reject(because: "a check", at: WallTime(seconds: 9))
            },
            Switch(testDescription: "a read of \(name) after its file was touched", hasSeveral: several) {
                let file = (several ? CacheDestination.catalogue : .single).file
                try TemporaryDirectory.touch($0.directory.cache + "/current/" + file)
                _ = try $0.cache.current("shop")
            },
        ]
    }

    static func text(_ text: String, _ several: Bool) -> String { several ? SeenSet.bundle(text) : text }

    func assign(_ cache: LocalCache) throws(CacheError) {
        try cache.ownership.assign([("shop", after.file)], sets: after.isSet ? ["shop"] : [])
    }
}

@Suite("A pipeline that is changed from several files to one file, or the reverse")
struct SetSwitchTests {
    @Test("at any moment of an operation keeps no content of the other kind", arguments: Switch.all)
    func anyMoment(change: Switch) throws {
        var number = 1
        while true {
            let files = FailingFileSystem()
            let fixture = try CacheFixture(fileSystem: files)
            for (offset, text) in ["older", "old"].enumerated() {
                try fixture.commit(Switch.text(text, change.hasSeveral), to: change.before, at: Int64(offset))
            }
            let moment = Moment(number)
            files.arm(.nothing) { [cache = fixture.cache] in
                if moment.isNow { moment.note(Result { try change.assign(cache) }) }
            }
            try? change.deed(fixture)
            files.arm(.nothing)
            guard let outcome = moment.outcome else { break }
            try outcome.get()
            let situation: Comment = "moment \(number)"
            try check(fixture, change, situation)
            try check(try CacheFixture(try fixture.directory.copied()), change, situation)
            number += 1
        }
        #expect(number > 1)
    }

    /// Checks that all kept content is of the pipeline's kind, and that the cache works as if nothing had happened.
    private func check(_ fixture: CacheFixture, _ change: Switch, _ situation: Comment) throws {
        #expect(fixture.report.pipelines.allSatisfy { !$0.hasFailed }, "\(fixture.report), \(situation)")
        let (row, kept, rejected) = try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
            let row = try index.pipelines.ensure("shop")
            return (row, try index.generations.all(of: row.id), try index.rejected.row(of: row.id))
        }
        let layout = fixture.cache.context.layout
        let paths =
            kept.map { layout.generation($0.content, of: "shop") }
            + [rejected?.digest].compactMap(\.self).map { layout.rejected($0, of: "shop") }
        for path in paths {
            let content = try TemporaryDirectory.read(path)
            #expect(((try? FileBundle(content)) != nil) == row.isSet, "\(path), \(situation)")
        }
        _ = try fixture.cache.current("shop")
        try change.assign(fixture.cache)
        _ = try fixture.cache.current("shop")
        if change.after.isSet {
            try fixture.commitSet("next", at: 20)
            try fixture.checkSet(["next"], situation)
        } else {
            try fixture.commit("next", to: .single, at: 20)
            #expect(try fixture.reader("catalogue") == "next", situation)
            #expect(try fixture.names("current") == ["catalogue"], situation)
            #expect(try fixture.names("sets").isEmpty, situation)
        }
        #expect(try fixture.cache.checker.examine("shop").findings == [], situation)
    }

    @Test("and still has content of the other kind publishes nothing until its next commit")
    func wrongKind() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.commit("one", to: CacheDestination(pipeline: "shop", file: "catalogue.stamp"), at: 1)
        }
        do {
            let database = try SQLiteDatabase(path: directory.state + "/index.sqlite", busyTimeout: 1000)
            try database.run("UPDATE pipelines SET is_set = 1")
        }
        let fixture = try CacheFixture(directory)
        #expect(fixture.report.pipelines.allSatisfy { !$0.hasFailed }, "\(fixture.report)")
        #expect(try fixture.cache.current("shop") == nil)
        #expect(try fixture.cache.validators("shop", boundTo: "https://example.com/jwks") == nil)
        try fixture.commitSet("two", at: 2)
        #expect(try fixture.seen == .of("two"))
        #expect(try fixture.cache.current("shop")?.number == 2)
    }
}

/// Fires once, at the n-th system call.
private final class Moment: Sendable {
    private let state: Mutex<(left: Int, outcome: Result<Void, any Error>?)>

    init(_ number: Int) { state = Mutex((number, nil)) }

    var isNow: Bool {
        state.withLock { state in
            state.left -= 1
            return state.left == 0
        }
    }

    func note(_ outcome: Result<Void, any Error>) { state.withLock { $0.outcome = outcome } }
    var outcome: Result<Void, any Error>? { state.withLock { $0.outcome } }
}

extension PipelineRecovery {
    fileprivate var hasFailed: Bool {
        repairs.contains { if case .failed = $0 { true } else { false } }
    }
}
