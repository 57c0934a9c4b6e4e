import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import Synchronization
import Testing

/// A loop on a thread of its own for the time of a test.
final class RunningLoop: Sendable {
    let loop: EventLoop

    init() throws {
        loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
    }

    deinit { loop.stop() }
}

/// Something that happens on one side of a test and that the other awaits.
struct Event: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func happen() { continuation.yield() }

    /// Awaits the next occurrence; one that came before counts.
    func occurrence() async {
        var iterator = stream.makeAsyncIterator()
        await iterator.next()
    }
}

/// Holds a script back until a test says go.
final class Gate: Sendable {
    private let isOpen = Atomic(false)

    func open() { isOpen.store(true, ordering: .releasing) }

    /// Blocks the calling thread, not for ever.
    func pass() {
        let deadline = ContinuousClock.now + .seconds(120)
        while !isOpen.load(ordering: .acquiring) && ContinuousClock.now < deadline { briefPause() }
    }
}

/// Waits for a condition, at most for a time that is hit in failure only.
func eventually(_ condition: () async -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(120)
    while ContinuousClock.now < deadline {
        if await condition() { return true }
        briefPause()
        await Task.yield()
    }
    return false
}

extension FetchResult {
    var content: FetchedContent? {
        guard case .content(let content) = self else { return nil }
        return content
    }

    var text: String? { content.map { String(decoding: $0.bytes, as: UTF8.self) } }
}

extension FetchedContent {
    /// Of a body in memory.
    var bytes: [UInt8] {
        guard case .bytes(let bytes) = body else { return [] }
        return bytes
    }
}

extension FetchError {
    var failure: RunFailure? {
        guard case .failed(let failure) = self else { return nil }
        return failure
    }
}

/// The failure with which a fetch ends.
func failureOf(_ fetch: () async throws(FetchError) -> some Sendable) async throws -> RunFailure {
    do throws(FetchError) {
        _ = try await fetch()
    } catch {
        return try #require(error.failure)
    }
    throw NotReached()
}

struct NotReached: Error {}
