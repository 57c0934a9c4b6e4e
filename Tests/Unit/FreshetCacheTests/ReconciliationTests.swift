import FreshetModel
import Testing

@testable import FreshetCache

@Suite("Reconciliation decides")
struct ReconciliationTests {
    private static func content(_ number: Int64, _ byte: UInt8) throws -> StoredContent {
        StoredContent(
            number: number, digest: try #require(ContentDigest(bytes: [UInt8](repeating: byte, count: 32))))
    }

    private let older: StoredContent
    private let old: StoredContent
    private let new: StoredContent

    init() throws {
        older = try Self.content(1, 1)
        old = try Self.content(2, 2)
        new = try Self.content(3, 3)
    }

    /// The inode of each content is its number.
    private func status(_ inode: Int64, changed: Int64 = 0) -> FileStatus {
        FileStatus(
            identity: FileIdentity(inode: UInt64(inode), size: 1, modified: 0, changed: changed), mode: 0o644, group: 0,
            links: 1, isRegularFile: true)
    }

    private func decide(
        current: Int64?, known: [StoredContent], stored: [StoredContent], reader: FileStatus?,
        readerDigest: ContentDigest? = nil, intact: [StoredContent] = [], temporaries: [DirectoryEntry] = [],
        hasFile: Bool = true
    ) throws -> Reconciliation {
        let index = PipelineInIndex(
            current: current, lastNumber: known.map(\.number).max() ?? 0,
            generations: known.map {
                IndexedGeneration(
                    content: $0, committedAt: WallTime(seconds: 0), run: nil, identity: status($0.number).identity)
            })
        let disk = PipelineOnDisk(
            generations: stored.map { PipelineOnDisk.Content(content: $0, inode: UInt64($0.number)) },
            temporaries: temporaries, reader: reader)
        return try Reconciliation(
            index: index, disk: disk, hasFile: hasFile, verifiesAll: false,
            readerDigest: { () throws(CacheError) in readerDigest },
            canRestore: { (content) throws(CacheError) in intact.contains(content) })
    }

    @Test("nothing, if the file is the committed one: no digest is computed")
    func agreement() throws {
        let plan = try decide(current: 2, known: [older, old], stored: [older, old], reader: status(2))
        #expect(plan.isEmpty)
        #expect(try decide(current: nil, known: [], stored: [], reader: nil).isEmpty)
    }

    @Test("that the index follows what readers see")
    func follow() throws {
        let plan = try decide(
            current: 2, known: [older, old], stored: [older, old, new], reader: status(3), readerDigest: new.digest)
        #expect(plan.current == .followed(new))
        #expect(plan.adopted.isEmpty && plan.unpublished.isEmpty && plan.forgotten.isEmpty)
    }

    @Test("that content which readers never saw is removed, and content they saw is added to the index again")
    func unknownContent() throws {
        let unseen = try decide(current: 2, known: [old], stored: [older, old, new], reader: status(2))
        #expect(unseen.current == .asIndexed)
        #expect(unseen.adopted == [older])
        #expect(unseen.unpublished == [new])
        let twin = try Self.content(2, 9)
        #expect(try decide(current: 2, known: [old], stored: [old, twin], reader: status(2)).unpublished == [twin])
    }

    @Test("that rows without content are deleted, but never the current one")
    func forget() throws {
        let plan = try decide(current: 2, known: [older, old], stored: [], reader: status(2))
        #expect(plan.current == .asIndexed)
        #expect(plan.forgotten == [1])
    }

    @Test("to restore the index's generation first, then the newest one")
    func restore() throws {
        let all = [older, old, new]
        #expect(try decide(current: 2, known: all, stored: all, reader: nil, intact: all).current == .restored(old))
        let rest = [older, new]
        #expect(try decide(current: 2, known: all, stored: all, reader: nil, intact: rest).current == .restored(new))
        let damaged = try decide(
            current: 2, known: all, stored: all, reader: status(2, changed: 5), readerDigest: older.digest,
            intact: [older])
        #expect(damaged.current == .restored(older))
    }

    @Test("to start again if there is no undamaged content")
    func lost() throws {
        let plan = try decide(current: 2, known: [older, old], stored: [older], reader: nil)
        #expect(plan.current == .lost)
        #expect(plan.forgotten == [1, 2])
        #expect(plan.unpublished == [older])
    }

    @Test("that a candidate which readers see becomes the next generation")
    func promote() throws {
        let entries = [DirectoryEntry(name: ".new-1", inode: 77), DirectoryEntry(name: ".new-2", inode: 78)]
        let plan = try decide(
            current: 2, known: [old], stored: [old], reader: status(78), readerDigest: new.digest, temporaries: entries)
        #expect(plan.current == .promoted(new, temporary: ".new-2"))
        #expect(plan.temporaries == [".new-1"])
    }

    @Test("to keep all content of a pipeline whose file is not known")
    func noFile() throws {
        let plan = try decide(current: nil, known: [], stored: [older, old], reader: nil, hasFile: false)
        #expect(plan.current == .asIndexed)
        #expect(plan.adopted == [older, old])
        #expect(plan.unpublished.isEmpty)
    }
}
