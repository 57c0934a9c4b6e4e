import FreshetEventLoop
import Testing

@testable import FreshetDaemon

@Suite("The heartbeat")
struct HeartbeatTests {
    @Test("the heartbeat beats repeatedly until it is released")
    func beats() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let (beats, continuation) = AsyncStream.makeStream(of: Void.self)
        var heartbeat: Heartbeat? = Heartbeat(loop, every: .milliseconds(1)) { continuation.yield() }
        var count = 0
        for await _ in beats {
            count += 1
            if count == 3 { break }
        }
        #expect(heartbeat != nil)
        weak let released = heartbeat
        heartbeat = nil
        #expect(released == nil, "its own timer does not keep it")
    }
}
