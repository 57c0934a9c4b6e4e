import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Files: whole, unchanged, or refused")
struct FileReaderTests {
    let directory: TemporaryDirectory
    let reader = FileReader(paths: PathPool(clock: ManualEngineClock()))

    init() throws { directory = try TemporaryDirectory() }

    func read(
        _ path: String, validators: Validators? = nil, maxBytes: UInt64 = 1 << 20
    ) async throws(FetchError) -> FetchResult {
        try await reader.read(path, validators: validators, maxBytes: maxBytes, progress: { _ in })
    }

    @Test("a file is read whole, and read again only when it was rewritten or replaced")
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

    @Test("a limit holds exactly")
    func limit() async throws {
        let path = try directory.write("12345", to: "a")
        #expect(try await read(path, maxBytes: 5).text == "12345")
        let failure = try await failureOf { () async throws(FetchError) in try await read(path, maxBytes: 4) }
        #expect(failure.kind == .content && failure.message.contains("check.max-bytes"))
        // No size is announced here.
        let unannounced = try await failureOf { () async throws(FetchError) in
            try await read("/proc/self/status", maxBytes: 10)
        }
        #expect(unannounced.kind == .content)
    }

    @Test("an empty file is empty, and a file that does not say its size is always read")
    func unsized() async throws {
        let empty = try #require(try await read(try directory.write("", to: "empty")).content)
        #expect(empty.bytes.isEmpty && empty.validators.isEmpty)
        let status = try #require(try await read("/proc/self/status").content)
        #expect(!status.bytes.isEmpty && status.validators.isEmpty)
    }

    @Test("an empty file of which it is known that it is whole is read again only when it was replaced")
    func knownToBeWhole() async throws {
        let path = try directory.write("", to: "empty")
        func read(_ validators: Validators?) async throws -> FetchResult {
            try await reader.read(path, saysSize: true, validators: validators, maxBytes: 1, progress: { _ in })
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

    @Test("a large file arrives whole")
    func large() async throws {
        let text = String(repeating: "0123456789abcdef", count: 200_000)
        #expect(try await read(try directory.write(text, to: "large"), maxBytes: 4 << 20).text == text)
    }

    @Test("what is no regular file is refused by name and not waited for")
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

    @Test("cancelled before it starts, nothing is read")
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

    @Test("a long file goes to the keeper, with the same tag; a short one does not")
    func long() async throws {
        let text = String(repeating: "0123456789abcdef", count: (2 << 20) / 16) + "."
        let path = try directory.write(text, to: "long")
        let keeper = ScriptedKeeper()
        let seen = Mutex<[UInt64]>([])
        let result = try await reader.read(
            path, validators: nil, maxBytes: 4 << 20, keeper: keeper,
            progress: { bytes in seen.withLock { $0.append(bytes) } })
        #expect(result.kept?.bytes == Array(text.utf8))
        #expect(result.content?.body.size == text.utf8.count)
        #expect(keeper.bodies.map(\.expected) == [UInt64(text.utf8.count)])
        #expect(seen.withLock { $0 } == [1 << 20, 2 << 20, 2 << 20 + 1])
        guard
            case .notModified = try await reader.read(
                path, validators: result.content?.validators, maxBytes: 4 << 20, keeper: keeper, progress: { _ in })
        else {
            Issue.record("it was read again")
            return
        }
        try directory.write("one", to: "short")
        let short = try await reader.read(
            "\(directory.path)/short", validators: nil, maxBytes: 4, keeper: keeper, progress: { _ in })
        #expect(short.text == "one" && keeper.bodies.count == 1)
    }

    @Test("a long file that is replaced or grows while it is read is read again, and nothing of the first try stays")
    func changesOnTheWay() async throws {
        let text = String(repeating: "a", count: 2 << 20)
        let path = try directory.write(text, to: "long")
        let keeper = ScriptedKeeper()
        let hasGrown = Atomic(false)
        let directory = directory
        let result = try await reader.read(
            path, validators: nil, maxBytes: 4 << 20, keeper: keeper,
            progress: { _ in
                guard !hasGrown.exchange(true, ordering: .relaxed) else { return }
                _ = try? directory.write(text + "b", to: "long")
            })
        #expect(result.kept?.bytes == Array((text + "b").utf8))
        #expect(keeper.bodies.map(\.isDiscarded) == [true, false])
    }

    @Test("a keeper that refuses ends the reading in its words")
    func refused() async throws {
        let path = try directory.write(String(repeating: "a", count: 3 << 20), to: "long")
        for plan in [ScriptedKeeper.Plan.refusesToBegin, .isFull(after: 2 << 20)] {
            let keeper = ScriptedKeeper(plan)
            let failure = try await failureOf { () async throws(FetchError) in
                try await reader.read(path, validators: nil, maxBytes: 4 << 20, keeper: keeper, progress: { _ in })
            }
            #expect(failure == ScriptedKeeper.refusal)
            #expect(!keeper.bodies.contains { !$0.isDiscarded })
        }
    }
}

@Suite("One fetcher for all sources")
struct SourceFetcherTests {
    @Test("each source goes to its own")
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
        // An empty copy is one that can be known again, too.
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
