import FreshetControl
import FreshetEventLoop
import FreshetSignals
import Logging
import Synchronization
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Deferred reports")
struct DeferredReportsTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    @Test("are made in their order, in the loop's next iteration")
    func later() async throws {
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        let reports = DeferredReports(loop)
        let lines = Lines()
        let before = await withCheckedContinuation { continuation in
            loop.perform {
                for line in ["a", "b"] { reports.add { lines.add(line) } }
                continuation.resume(returning: lines.all)
            }
        }
        #expect(before.isEmpty)
        #expect(await eventually { lines.all == ["a", "b"] })
        reports.add { lines.add("c") }
        #expect(await eventually { lines.all == ["a", "b", "c"] })
    }

    @Test("are made immediately by a flush, which a report may call too")
    func flush() throws {
        let reports = DeferredReports(try EventLoop())
        let lines = Lines()
        reports.add {
            lines.add("a")
            reports.flush()
        }
        reports.add { lines.add("b") }
        reports.flush()
        #expect(lines.all == ["a", "b"])
        reports.flush()
        #expect(lines.all == ["a", "b"])
    }

    @Test("of signals come before whatever looks at the recorder")
    func recorder() throws {
        let clock = FakeClock()
        let log = LogRecorder()
        let recorder = SignalRecorder(
            events: ControlEvents(), log: log.logger, limiter: LogLimiter(log: log.logger, clock: clock), clock: clock,
            reports: DeferredReports(try EventLoop()))
        let source = SignalSource("network")
        let following = recorder.follow(source.signal, row: "network")
        source.fire("reachable via wan0")
        #expect(log.lines.isEmpty)
        #expect(recorder["network"].detail == "reachable via wan0")
        #expect(log.lines.count == 1)
        withExtendedLifetime(following) {}
    }
}
