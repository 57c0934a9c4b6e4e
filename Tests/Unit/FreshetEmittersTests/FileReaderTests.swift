import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Reading files: content, unchanged files and failures")
struct FileReaderTests {
    let directory: TemporaryDirectory
    let reader = FileReader(paths: PathPool(clock: ManualEngineClock()))

    init() throws { directory = try TemporaryDirectory() }

    func read(
        _ path: String, validators: Validators? = nil, maxBytes: UInt64 = 1 << 20
    ) async throws(FetchError) -> FetchResult {
        try await reader.read(path, validators: validators, maxBytes: maxBytes, progress: { _ in })
    }

    @Test("a file is read completely, and is read again only after it was rewritten or replaced")
    func unchanged() async throws {
        let path = try directory.write("one", to: "a")
        let first = try #require(try await read(path).content)
        #expect(first.bytes == Array("one".utf8) && first.mediaType == nil)
        let validators = first.validators
        #expect(!validators.isEmpty)

        let second = try await read(path, validators: validators)
        guard case .notModified(let same, _) = second else {
            Issue.record("\(second)")
            return
        }
        #expect(same == validators)

        // Another inode, the same size, perhaps the same time.
        try directory.write("two", to: "b")
        try directory.rename("b", to: "a")
        let third = try #require(try await read(path, validators: validators).content)
        #expect(third.bytes == Array("two".utf8))
        // Another size in place.
        try directory.write("three", to: "a")
        #expect(try await read(path, validators: third.validators).text == "three")
    }

    @Test("the size limit holds exactly")
    func limit() async throws {
        let path = try directory.write("12345", to: "a")
        #expect(try await read(path, maxBytes: 5).text == "12345")
        let failure = try await failureOf { () async throws(FetchError) in try await read(path, maxBytes: 4) }
        #expect(failure.kind == .content && failure.message.contains("check.max-bytes"))
        // This file does not report its size.
        let unannounced = try await failureOf { () async throws(FetchError) in
            try await read("/proc/self/status", maxBytes: 10)
        }
        #expect(unannounced.kind == .content)
    }

    @Test("an empty file and a file that does not report its size have no validators")
    func unsized() async throws {
        let empty = try #require(try await read(try directory.write("", to: "empty")).content)
        #expect(empty.bytes.isEmpty && empty.validators.isEmpty)
        let status = try #require(try await read("/proc/self/status").content)
        #expect(!status.bytes.isEmpty && status.validators.isEmpty)
    }

    @Test("an empty file that reports its size is read again only after it was replaced")
    func reportsSize() async throws {
        let path = try directory.write("", to: "empty")
        func read(_ validators: Validators?) async throws -> FetchResult {
            try await reader.read(path, reportsSize: true, validators: validators, maxBytes: 1, progress: { _ in })
        }
        let validators = try #require(try await read(nil).content).validators
        #expect(!validators.isEmpty)
        guard case .notModified = try await read(validators) else {
            Issue.record("it was read again")
            return
        }
        try directory.write("", to: "other")
        try directory.rename("other", to: "empty")
        #expect(try await read(validators).content?.bytes == [])
    }

    @Test("a large file is read completely")
    func large() async throws {
        let text = String(repeating: "0123456789abcdef", count: 200_000)
        #expect(try await read(try directory.write(text, to: "large"), maxBytes: 4 << 20).text == text)
    }

    @Test("a file that is not a regular file fails immediately, and the failure names the path and its kind")
    func notRegular() async throws {
        for (path, kind) in [
            (try directory.makeFIFO("fifo"), "FIFO"), (directory.path, "directory"), ("/dev/null", "device"),
        ] {
            let failure = try await failureOf { () async throws(FetchError) in try await read(path) }
            #expect(failure.kind == .local)
            #expect(failure.message.contains(path) && failure.message.contains(kind))
        }
        let failure = try await failureOf { () async throws(FetchError) in try await read("/nonexistent") }
        #expect(failure.message == "could not open /nonexistent: No such file or directory")
    }

    @Test("a read that is cancelled before it starts does not read the file")
    func cancelled() async throws {
        let path = try directory.write("one", to: "a")
        let gate = Event()
        let task = Task { () async throws(FetchError) in
            await gate.occurrence()
            return try await read(path)
        }
        task.cancel()
        gate.happen()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
    }

    @Test("a long file is written to the body store and has an entity tag; a short file stays in memory")
    func long() async throws {
        let text = String(repeating: "0123456789abcdef", count: (2 << 20) / 16) + "."
        let path = try directory.write(text, to: "long")
        let bodyStore = ScriptedBodyStore()
        let seen = Mutex<[UInt64]>([])
        let result = try await reader.read(
            path, validators: nil, maxBytes: 4 << 20, bodyStore: bodyStore,
            progress: { bytes in seen.withLock { $0.append(bytes) } })
        #expect(result.kept?.bytes == Array(text.utf8))
        #expect(result.content?.body.size == text.utf8.count)
        #expect(bodyStore.bodies.map(\.expected) == [UInt64(text.utf8.count)])
        #expect(seen.withLock { $0 } == [1 << 20, 2 << 20, 2 << 20 + 1])
        guard
            case .notModified = try await reader.read(
                path, validators: result.content?.validators, maxBytes: 4 << 20, bodyStore: bodyStore,
                progress: { _ in })
        else {
            Issue.record("it was read again")
            return
        }
        try directory.write("one", to: "short")
        let short = try await reader.read(
            "\(directory.path)/short", validators: nil, maxBytes: 4, bodyStore: bodyStore, progress: { _ in })
        #expect(short.text == "one" && bodyStore.bodies.count == 1)
    }

    @Test("a long file that changes while it is read is read again, and the first attempt is discarded")
    func changesMeanwhile() async throws {
        let text = String(repeating: "a", count: 2 << 20)
        let path = try directory.write(text, to: "long")
        let bodyStore = ScriptedBodyStore()
        let hasGrown = Atomic(false)
        let directory = directory
        let result = try await reader.read(
            path, validators: nil, maxBytes: 4 << 20, bodyStore: bodyStore,
            progress: { _ in
                guard !hasGrown.exchange(true, ordering: .relaxed) else { return }
                _ = try? directory.write(text + "b", to: "long")
            })
        #expect(result.kept?.bytes == Array((text + "b").utf8))
        #expect(bodyStore.bodies.map(\.isDiscarded) == [true, false])
    }

    @Test("an error of the body store ends the read with that error")
    func refused() async throws {
        let path = try directory.write(String(repeating: "a", count: 3 << 20), to: "long")
        for plan in [ScriptedBodyStore.Plan.refusesToBegin, .isFull(after: 2 << 20)] {
            let bodyStore = ScriptedBodyStore(plan)
            let failure = try await failureOf { () async throws(FetchError) in
                try await reader.read(
                    path, validators: nil, maxBytes: 4 << 20, bodyStore: bodyStore, progress: { _ in })
            }
            #expect(failure == ScriptedBodyStore.rejection)
            #expect(!bodyStore.bodies.contains { !$0.isDiscarded })
        }
    }
}

/// A flag that several tasks share.
private final class SharedFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}

/// These tests need root, which may change the owner of a link. Otherwise the daemon's user owns all files, and no link
/// is refused.
@Suite("Files: links of other users, and the daemon's own files", .enabled(if: geteuid() == 0))
struct FileTrustTests {
    let directory: TemporaryDirectory
    static let bob: uid_t = 2_002
    static let eve: uid_t = 2_003

    init() throws { directory = try TemporaryDirectory() }

    private func read(_ path: String, own: PrivateDirectories = PrivateDirectories()) async throws(FetchError)
        -> FetchResult
    {
        try await FileReader(paths: PathPool(clock: ManualEngineClock()), own: own).read(
            path, validators: nil, maxBytes: 1 << 20, progress: { _ in })
    }

    private func refusal(_ path: String, own: PrivateDirectories = PrivateDirectories()) async throws -> String {
        let failure = try await failureOf { () async throws(FetchError) in try await read(path, own: own) }
        #expect(failure.kind == .local)
        return failure.message
    }

    private func link(_ name: String, to target: String, of owner: uid_t) throws -> String {
        let path = directory.path(name)
        try #require(symlink(target, path) == 0 && lchown(path, owner, owner) == 0)
        return path
    }

    private func file(_ name: String, of owner: uid_t, mode: mode_t = 0o644) throws -> String {
        let path = try directory.write(name, to: name)
        try #require(chown(path, owner, owner) == 0 && chmod(path, mode) == 0)
        return path
    }

    @Test("a user's link to the user's own file and a link of root or of the daemon's user to any file are followed")
    func followed() async throws {
        let own = try file("own", of: Self.bob)
        _ = try file("roots", of: 0)
        try directory.makeDirectory("real")
        _ = try file("real/inner", of: Self.bob)
        #expect(try await read(try link("bobs", to: own, of: Self.bob)).text == "own")
        #expect(try await read(try link("relative", to: "./real/../own", of: Self.bob)).text == "own")
        #expect(try await read(try link("of-root", to: own, of: 0)).text == "own")
        #expect(try await read(try link("root-to-root", to: "roots", of: 0)).text == "roots")
        _ = try link("way", to: "real", of: Self.bob)
        #expect(try await read(directory.path("way/inner")).text == "real/inner")
        #expect(try await read(try link("twice", to: "bobs", of: 0)).text == "own")
    }

    @Test("a user's link to a file of another user is refused anywhere in the path, and the failure names both paths")
    func refused() async throws {
        let secret = try file("secret", of: 0, mode: 0o600)
        let bobs = try link("bobs", to: secret, of: Self.bob)
        let message = try await refusal(bobs)
        #expect(message.contains("the link \(bobs) of user 2002 leads to \(secret) of user 0"))
        #expect(message.contains("source.file"))
        _ = try file("eves", of: Self.eve)
        #expect(try await refusal(try link("to-eve", to: "eves", of: Self.bob)).contains("of user 2003"))
        // A link to a directory, and a chain whose other links are trusted.
        _ = try link("way", to: directory.path, of: Self.bob)
        #expect(try await refusal(directory.path("way/secret")).contains("way of user 2002"))
        #expect(try await refusal(try link("outer", to: "bobs", of: 0)).contains("of user 2002"))
        // Files in /proc/self belong to the daemon.
        #expect(try await refusal(try link("process", to: "/proc/self/environ", of: Self.bob)).contains("of user 2002"))
    }

    @Test("a file in the daemon's own directories is refused, even with a link of root")
    func ownDirectories() async throws {
        let state = try directory.makeDirectory("state")
        let cache = try directory.makeDirectory("cache")
        for name in ["cache/current", "cache/generations", "cache/generations/p"] { try directory.makeDirectory(name) }
        try #require(chmod(directory.path("cache/generations"), 0o700) == 0)
        let own = PrivateDirectories(whole: [state, directory.path("missing")], cache: cache)
        let index = try file("state/index.sqlite", of: 0)
        #expect(try await refusal(index, own: own).contains("in \(state)"))
        let message = try await refusal(try link("index", to: index, of: 0), own: own)
        #expect(message.contains(directory.path("index")) && message.contains(index) && message.contains(state))
        // With another name of the directory.
        _ = try link("other-name", to: "state", of: 0)
        #expect(
            try await refusal(directory.path("other-name/index.sqlite"), own: own).contains("in \(state)"))
        // Files in the cache are read if everybody may read them.
        _ = try file("cache/current/public", of: 0)
        _ = try file("cache/current/private", of: 0, mode: 0o640)
        _ = try file("cache/generations/p/1", of: 0)
        #expect(try await read(directory.path("cache/current/public"), own: own).text == "cache/current/public")
        #expect(try await refusal(directory.path("cache/current/private"), own: own).contains("in \(cache)"))
        #expect(try await refusal(directory.path("cache/generations/p/1"), own: own).contains("in \(cache)"))
        // A reader of copies reads them without these checks.
        let copies = FileReader(paths: PathPool(clock: ManualEngineClock()), own: own).forCopies
        #expect(
            try await copies.read(
                directory.path("cache/current/private"), validators: nil, maxBytes: 100, progress: { _ in }
            ).text == "cache/current/private")
    }

    @Test("a link that is exchanged while it is read never returns a file of another user")
    func exchanged() async throws {
        let secret = try file("secret", of: 0, mode: 0o600)
        let own = try file("own", of: Self.bob)
        let path = try link("mine", to: own, of: Self.bob)
        let isDone = SharedFlag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                var count = 0
                while !isDone.isSet {
                    count += 1
                    let next = try link("next-\(count)", to: count % 2 == 0 ? own : secret, of: Self.bob)
                    _ = Glibc.rename(next, path)
                    await Task.yield()
                }
            }
            for _ in 0..<2_000 {
                if let text = try? await read(path).text { #expect(text == "own") }
            }
            isDone.set()
            try await group.waitForAll()
        }
    }
}

@Suite("Fetching all kinds of sources")
struct SourceFetcherTests {
    @Test("each source is fetched with its own fetcher")
    func dispatch() async throws {
        let running = try RunningLoop()
        let workers = WorkerPool()
        let directory = try TemporaryDirectory()
        let fetcher = SourceFetcher(
            http: HTTPClient(running.loop), commands: CommandRunner(running.loop, workers: workers),
            files: FileReader(paths: PathPool(clock: ManualEngineClock())), copies: directory.path)
        let file = try directory.write("file", to: "a")
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "origin") }
        #expect(try await fetcher.fetch(FetchRequest(source: .file(file))).text == "file")
        #expect(try await fetcher.fetch(FetchRequest(source: .copy(of: "other", file: "a"))).text == "file")
        // An empty copy has validators, too.
        try directory.write("", to: "empty")
        let empty = try await fetcher.fetch(FetchRequest(source: .copy(of: "other", file: "empty"))).content
        #expect(empty?.bytes == [] && empty?.validators.isEmpty == false)
        for missing in ["b", ""] {
            await #expect {
                try await fetcher.fetch(FetchRequest(source: .copy(of: "other", file: missing)))
            } throws: { error in
                guard case .failed(let failure)? = error as? FetchError else { return false }
                return failure.kind == .absent && failure.message.contains("'other'")
            }
        }
        #expect(try await fetcher.fetch(FetchRequest(source: .command(["/bin/echo", "command"]))).text == "command\n")
        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        #expect(try await fetcher.fetch(FetchRequest(source: .http(source))).text == "origin")
    }
}
