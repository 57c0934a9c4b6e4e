import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

/// An event loop on a separate thread for the duration of a test.
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

    /// Awaits the next occurrence; an earlier occurrence counts.
    func occurrence() async {
        var iterator = stream.makeAsyncIterator()
        await iterator.next()
    }
}

extension JQTransformer {
    /// The daemon's executable, which is in the same directory as the tests.
    static func realHelper() throws -> ChildProcess.Command { program("\(try productsDirectory())/freshetd") }

    /// So long that no helper expires during a test on a busy machine.
    static let lastingWarmth = Duration.seconds(3_600)

    static func withRealHelper(_ running: RunningLoop) throws -> JQTransformer {
        JQTransformer(running.loop, workers: WorkerPool(), helper: try realHelper(), warmth: lastingWarmth)
    }
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
