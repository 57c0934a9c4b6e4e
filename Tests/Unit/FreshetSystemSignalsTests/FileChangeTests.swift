import FreshetEventLoop
import Testing

@testable import FreshetSystemSignals

@Suite("The change between two checks of a path")
struct FileChangeTests {
    private static let file = FileSnapshot(identity: FileIdentity(device: 1, inode: 7), size: 3, modifiedSeconds: 100)
    private static let other = FileSnapshot(identity: FileIdentity(device: 1, inode: 8), size: 3, modifiedSeconds: 100)
    private static let longer = FileSnapshot(identity: FileIdentity(device: 1, inode: 7), size: 4, modifiedSeconds: 100)
    private static let later = FileSnapshot(
        identity: FileIdentity(device: 1, inode: 7), size: 3, modifiedSeconds: 100, modifiedNanoseconds: 1)
    private static let folder = FileSnapshot(identity: FileIdentity(device: 1, inode: 9), isDirectory: true)
    private static let laterFolder = FileSnapshot(
        identity: FileIdentity(device: 1, inode: 9), isDirectory: true, modifiedSeconds: 1)

    @Test(
        "is the one in the table",
        arguments: [
            (nil, nil, [], .nothing), (nil, nil, .look, .minor), (nil, file, .look, .created),
            (nil, file, .arrived, .created), (file, nil, .look, .removed), (file, other, .look, .replaced),
            (file, other, .written, .replaced), (file, folder, .look, .replaced), (file, file, .arrived, .replaced),
            (file, file, .written, .written), (file, longer, .written, .written), (file, file, .look, .minor),
            (file, file, .rewatch, .minor), (file, longer, .look, .written), (file, later, .rewatch, .written),
            (file, longer, [], .nothing), (folder, folder, .entries, .entriesChanged),
            (folder, laterFolder, .look, .entriesChanged), (folder, folder, .look, .minor), (file, file, [], .nothing),
        ] as [(FileSnapshot?, FileSnapshot?, FileEvents, FileChange)])
    func table(before: FileSnapshot?, after: FileSnapshot?, received: FileEvents, delta: FileChange) {
        #expect(FileChange(from: before, to: after, received: received) == delta)
    }

    @Test("fires, unless it is minor or nothing")
    func details() {
        #expect(FileChange.minor.detail == nil)
        #expect(FileChange.nothing.detail == nil)
        for delta in [FileChange.created, .removed, .replaced, .written, .entriesChanged] {
            #expect(delta.detail != nil)
        }
    }
}

@Suite("The table of inotify watches")
struct FileWatchTableTests {
    private func step(_ role: PathResolution.Step.Role) -> PathResolution.Step {
        PathResolution.Step(directory: "/d", identity: FileIdentity(device: 1, inode: 1), role: role)
    }

    private func received(_ table: FileWatchTable, _ events: InotifyEvent...) -> [UInt64: FileEvents] {
        var received: [UInt64: FileEvents] = [:]
        for event in events { table.receive(event, &received) }
        return received
    }

    @Test("assigns an event to the followers of its name only")
    func names() {
        var table = FileWatchTable()
        #expect(table.set(1, to: [(5, step(.file("a")))]).isEmpty)
        #expect(table.set(2, to: [(5, step(.name("b")))]).isEmpty)
        #expect(table.set(3, to: [(5, step(.entries))]).isEmpty)
        #expect(table.set(4, to: [(5, step(.passed))]).isEmpty)
        #expect(received(table, InotifyEvent(5, .written, name: "a")) == [1: .written, 3: .entries])
        #expect(received(table, InotifyEvent(5, .created, name: "a")) == [1: .arrived, 3: .entries])
        #expect(received(table, InotifyEvent(5, .movedHere, name: "b")) == [2: .look, 3: .entries])
        #expect(received(table, InotifyEvent(5, .removed, name: "c")) == [3: .entries])
        #expect(received(table, InotifyEvent(5, .selfMoved)) == [1: .look, 2: .look, 3: .look, 4: .look])
        #expect(received(table, InotifyEvent(6, .written, name: "a")).isEmpty)
    }

    @Test("requires a check and new watches of all paths after an overflow")
    func overflow() {
        var table = FileWatchTable()
        _ = table.set(1, to: [(5, step(.file("a")))])
        _ = table.set(2, to: [(6, step(.file("a")))])
        let again: FileEvents = [.look, .rewatch]
        #expect(received(table, InotifyEvent(-1, .overflowed)) == [1: again, 2: again])
    }

    @Test("returns watches that are no longer used")
    func unused() {
        var table = FileWatchTable()
        _ = table.set(1, to: [(5, step(.file("a"))), (6, step(.passed))])
        _ = table.set(2, to: [(5, step(.file("a")))])
        #expect(table.set(1, to: [(7, step(.name("x")))]) == [6])
        #expect(table.set(2, to: []) == [5])
        #expect(table.set(1, to: []) == [7])
        #expect(table.count == 0)
    }
}
