import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The collaborators of the cache, made alone")
struct CollaboratorTests {
    private let directory: TemporaryDirectory
    private let context: CacheContext

    init() throws {
        directory = try .forCache()
        let layout = CacheLayout(cacheDirectory: directory.cache, stateDirectory: directory.state)
        for path in [directory.cache, directory.state] { _ = try LinuxFileSystem().makeDirectory(path, mode: 0o755) }
        let index = SharedIndex(try CacheIndex(path: ":memory:", checksPages: false), layout: layout)
        context = CacheContext(
            layout: layout, fileSystem: LinuxFileSystem(), quota: CacheQuota(reserve: .none), index: index,
            lock: try StateLock(layout))
        try context.onFiles { (files) throws(FreshetCache.SystemCallError) in
            try context.makeDirectories(for: "shop", files)
        }
    }

    private func write(_ text: String, to path: String) throws {
        try LinuxFileSystem().write(Array(text.utf8), to: path, mode: 0o644, group: getegid())
    }

    @Test("temporary names are unique, follow those that are in use, and count the bytes of unfinished content")
    func names() {
        let names = TemporaryNames()
        let first = names.make()
        names.skip(40)
        let second = names.make()
        #expect(first < 40 && second > 40)
        names.setSize(first, 3)
        names.setSize(second, 4)
        #expect(names.unfinishedBytes == 7 && names.isInUse(CacheLayout.temporary(first)))
        names.release(first)
        names.setSize(first, 9)
        #expect(names.unfinishedBytes == 4 && !names.isInUse(CacheLayout.temporary(first)))
    }

    @Test("a directory in the place of a published file is moved aside, and the file is linked")
    func published() throws {
        let (files, published) = (LinuxFileSystem(), PublishedFiles(context: context))
        let stored = context.layout.generations(of: "shop") + "/1"
        try write("one", to: stored)
        let reader = context.layout.reader("file")
        _ = try files.makeDirectory(reader, mode: 0o755)
        try published.link(stored, at: reader, by: context.names.make(), files)
        #expect(try TemporaryDirectory.read(reader) == Array("one".utf8))
        #expect(try files.list(context.layout.strays).count == 1)
        try published.hide("file")
        #expect(try files.status(reader) == nil && files.status(stored) != nil)
    }

    @Test("the directory of several files is made from its stamp, and repaired in its place")
    func sets() throws {
        let (files, writer) = (LinuxFileSystem(), FileSetWriter(context: context))
        let stamp = context.layout.generations(of: "shop") + "/1"
        try write(SeenSet.bundle("one"), to: stamp)
        let set = StoredContent(number: 1, digest: .zero)
        let path = context.layout.set(set, of: "shop")
        try writer.make(set, of: "shop", from: stamp)
        let (bundle, status) = try writer.bundle(at: stamp)
        #expect(try writer.errors(ofSet: path, bundle, status).isEmpty)
        let name = try #require(bundle.members.first).name
        try files.unlink(path + "/" + name)
        #expect(try writer.errors(ofSet: path, bundle, status).map(\.name) == [name])
        try writer.make(set, of: "shop", from: stamp)
        #expect(try writer.errors(ofSet: path, bundle, status).isEmpty)
    }

    @Test("leftovers beyond those of the start wait until they are removed")
    func leftovers() throws {
        let leftovers = LeftoverFiles(context)
        let current = context.layout.current
        for number in 1...70 {
            let name = CacheLayout.temporary(UInt64(number))
            try write("x", to: current + "/" + name)
            try leftovers.remove(leftover: name, in: current, of: nil)
        }
        #expect(try LinuxFileSystem().list(current).count == 6)
        #expect(context.names.make() > 70)
        #expect(leftovers.remove(atMost: 4) && !leftovers.remove(atMost: 4))
        #expect(try LinuxFileSystem().list(current).isEmpty)
    }
}
