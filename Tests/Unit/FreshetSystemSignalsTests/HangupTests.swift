import FreshetEventLoop
import FreshetSignals
import Glibc
import Testing

@testable import FreshetSystemSignals

@Suite("SIGHUP")
struct HangupTests {
    @Test("of a process requests a reload, with the process in the detail")
    func process() async {
        let requests = SignalSource("reload"), terminal = SignalSource("terminal-closed")
        var causes = Signal.merge(requests.signal, terminal.signal).causes.makeAsyncIterator()
        HangupSource.notify(4_711, isFromKernel: false, requests: requests, terminal: terminal)
        let cause = await causes.next(isolation: nil)?.first
        #expect(cause?.first.signal == "reload")
        #expect(cause?.first.detail == "SIGHUP from process 4711")
    }

    @Test("of the kernel means a closed terminal, and requests no reload")
    func terminal() async {
        let requests = SignalSource("reload"), terminal = SignalSource("terminal-closed")
        var causes = Signal.merge(requests.signal, terminal.signal).causes.makeAsyncIterator()
        HangupSource.notify(0, isFromKernel: true, requests: requests, terminal: terminal)
        let pending = await causes.next(isolation: nil)
        #expect(pending?.map(\.first.signal) == ["terminal-closed"])
    }

    @Test("is received on the loop")
    func received() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "hangup-test")
        defer { loop.stop() }
        let body = HangupActor(loop)
        #expect(try await body.hangUp() == "SIGHUP from process \(getpid())")
    }
}

/// Everything runs on the loop's thread: only that thread blocks SIGHUP, and the signal is sent to that thread.
private actor HangupActor {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ loop: EventLoop) { self.loop = loop }

    func hangUp() async throws -> String? {
        SignalDescriptor.block([SIGHUP])
        let source = try HangupSource(loop)
        var causes = source.reloadRequested.causes.makeAsyncIterator()
        pthread_kill(pthread_self(), SIGHUP)
        return await causes.next(isolation: self)?.first?.first.detail
    }
}
