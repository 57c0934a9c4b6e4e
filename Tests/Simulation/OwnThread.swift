import FreshetEventLoop
import Testing

/// Runs stories one after the other on a separate thread: they compute for seconds, and would block the runtime's few
/// threads for tests that wait for the real world.
struct OwnThread: TestTrait, SuiteTrait, TestScoping {
    private static let loop = Result { () throws(SystemCallError) in
        let loop = try EventLoop()
        try loop.runInThread(named: "simulation")
        return loop
    }

    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(try Self.loop.get()) { try await function() }
    }
}

extension Trait where Self == OwnThread {
    static var ownThread: OwnThread { OwnThread() }
}
