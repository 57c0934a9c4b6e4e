import FreshetEventLoop
import FreshetSignals
import FreshetSystemSignals
import FreshetTestKit
import Glibc
import Synchronization
import SystemExamples
import TestSupport
import Testing

/// Uses this machine's own kernel: loopback needs no privileges and no network.
@Suite("Examples: system facts and signals", .hangLimit)
struct WatchersTests {
    @Test("the network is reported immediately, until the task is cancelled")
    func network() async {
        #expect(await first { report in await reportNetwork(report) }.isEmpty == false)
    }

    @Test("the route to a host is reported on the program's own loop")
    func route() async throws {
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        let host = try #require(IPAddress("127.0.0.1"))
        let reported = await first { report in await reportRoute(to: host, on: loop, report) }
        #expect(reported == "127.0.0.1: on lo from 127.0.0.1")
    }

    @Test("a file is read immediately, and again after a write")
    func file() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("a")
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        let reads = Mutex(0)
        var lines = lines(of: path) { path in
            reads.withLock {
                $0 += 1
                return ["\($0)", path]
            }
        }.makeAsyncIterator()
        #expect(await lines.next(isolation: nil) == ["1", path])
        close(descriptor)
        #expect(await lines.next(isolation: nil) == ["2", path])
    }

    @Test("missing services are reported, and the test needs no bus")
    func missing() async {
        #expect(await missingParts().count <= 2)
    }

    @Test("a forecast is loaded immediately, and again for a reason; a failure becomes a text")
    func forecast() throws {
        let stage = MarbleStage()
        let reasons = stage.signal("--r--r--")
        let count = Mutex(0)
        let forecast = Forecast {
            try count.withLock { count in
                count += 1
                if count == 3 { throw CancellationError() }
                return "\(count)"
            }
        }
        try stage.expect(forecast.texts(reloadedOn: reasons), "1-2--n--") { String($0.prefix(1)) }
    }

    @Test("the signals of the system are subscribed while there is an iteration")
    func reasons() async {
        let text = await Forecast { "sunny" }.texts().first { _ in true }
        #expect(text == "sunny")
    }

    /// Returns the first text of a reporting task; then that task is cancelled, and has ended.
    private func first(_ run: @escaping @Sendable ((String) -> Void) async -> Void) async -> String {
        let (reported, reports) = AsyncStream.makeStream(of: String.self)
        let task = Task { await run { reports.yield($0) } }
        let first = await reported.first { _ in true }
        task.cancel()
        await task.value
        return first ?? ""
    }
}
