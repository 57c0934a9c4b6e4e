import FreshetEventLoop
import FreshetSignals
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

@Suite("System sources", .hangLimit)
struct FactsTests {
    @Test("the network: the current fact comes first, from this machine's own kernel")
    func network() async throws {
        let fact = await Reachability(of: .address(try address("127.0.0.1"))).changes.first { _ in true }
        #expect(try #require(fact).isReachable)
        #expect(fact?.paths.first?.interfaceName == "lo")
        // The short form has the target elsewhere, which has a fact, too.
        #expect(await Reachability.changes.first { _ in true }?.target == .elsewhere)
    }

    @Test("a description costs nothing, and the end of the last iteration closes thread, loop and sources")
    func closed() async throws {
        let stage = Stage()
        let host = stage.host
        let reachability = Reachability(of: .elsewhere, in: host)
        let file = WatchedFile(at: "/etc/hostname", in: host)
        let signal = Signal.merge(reachability.signal, file.signal, Sleep(in: host).resumed)
        #expect(stage.opened == 0)
        do {
            var one = reachability.changes.makeAsyncIterator()
            var other = file.changes.makeAsyncIterator()
            let subscription = signal.makeAsyncIterator()
            #expect(stage.opened == 1, "all are on one loop")
            #expect(await one.next(isolation: nil) != nil)
            #expect(await other.next(isolation: nil) != nil)
            #expect(stage.isOpen)
            withExtendedLifetime((one, other, subscription)) {}
        }
        #expect(!stage.isOpen)
        #expect(await stage.loopIsGone(), "its thread still has it")
        // And again.
        #expect(await reachability.changes.first { _ in true } != nil)
        #expect(stage.opened == 2)
        #expect(await stage.loopIsGone())
    }

    @Test("several subscribers of one source open it once")
    func shared() async throws {
        let stage = Stage()
        let sources = try stage.sources()
        let network = sources.network()
        let host = stage.host
        var one = Reachability(of: .elsewhere, in: host).changes.makeAsyncIterator()
        var other = Reachability(of: .elsewhere, in: host).changes.makeAsyncIterator()
        #expect(await one.next(isolation: nil) == other.next(isolation: nil))
        #expect(network.counts.listings >= 1)
        #expect(sources.network() === network)
        let watch = network.watch(.elsewhere)
        #expect(watch === sources.network().watch(.elsewhere))
    }

    @Test("a cancelled task ends the iteration, which closes its sources")
    func cancelled() async throws {
        let stage = Stage()
        let started = SignalSource("started")
        var begun = started.signal.makeAsyncIterator()
        let task = Task {
            var facts = 0
            for await _ in Reachability(of: .elsewhere, in: stage.host).changes {
                facts += 1
                started.fire()
            }
            return facts
        }
        _ = await begun.next(isolation: nil)
        #expect(stage.isOpen)
        task.cancel()
        #expect(await task.value >= 1)
        #expect(!stage.isOpen)
        #expect(await stage.loopIsGone())
    }

    @Test("a program's own loop is used and keeps running")
    func ownLoop() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "facts-test")
        defer { loop.stop() }
        var ticks = Timers.every(.milliseconds(1), on: loop).signal.makeAsyncIterator()
        #expect(await ticks.next(isolation: nil) != nil)
        #expect(await Sleep(on: loop).changes.first { _ in true } != nil)
        #expect(await Reachability(on: loop).changes.first { _ in true } != nil)
        // The loop still runs.
        await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
    }

    @Test("a file: the current state first, then each change, and the signal with its detail")
    func file() async throws {
        let stage = Stage()
        let directory = try TemporaryDirectory()
        let file = WatchedFile(at: directory.path("a"), in: stage.host)
        var changes = file.changes.makeAsyncIterator()
        var causes = file.signal.causes.makeAsyncIterator()
        #expect(await changes.next(isolation: nil) == FileFact(exists: false))
        close(open(file.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(await changes.next(isolation: nil)?.exists == true)
        #expect(await causes.next(isolation: nil)?.first?.first.signal == "file \(directory.path)/a")
        #expect(WatchedFile(at: "a").path.hasSuffix("/a") && WatchedFile(at: "a").path.hasPrefix("/"))
    }

    @Test("a timer fires at multiples of its period, once for missed ones, and its fact has the next instant")
    func timer() async throws {
        let clock = ManualAlarmClock()
        let stage = Stage()
        let timer = RepeatingTimer(every: .seconds(10), in: stage.host, clock: { _ in clock })
        let start = clock.now
        do {
            var changes = timer.changes.makeAsyncIterator()
            var causes = timer.signal.causes.makeAsyncIterator()
            #expect(await changes.next(isolation: nil) == TimerFact(next: start + .seconds(10)))
            clock.advance(by: .seconds(10))
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            #expect(
                await changes.next(isolation: nil)
                    == TimerFact(next: start + .seconds(20), firedAt: start + .seconds(10)))
            // The machine slept.
            clock.advance(by: .seconds(45))
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            #expect(
                await changes.next(isolation: nil)
                    == TimerFact(next: start + .seconds(60), firedAt: start + .seconds(55)))
        }
        #expect(await timer.changes.first { _ in true } == TimerFact(next: start + .seconds(65)), "it starts again")
        #expect(Timers.every(.zero).period == RepeatingTimer.shortestPeriod)
    }

    @Test("an unblocked SIGHUP is reported as an obstacle")
    func hangups() async throws {
        let stage = Stage()
        // The thread that runs tests has the signal mask from the program's start.
        #expect(await Hangups(in: stage.host).changes.first { _ in true }?.obstacle == HangupFact.notBlocked)
        #expect(HangupSource.isBlocked(in: "Name:\tx\nSigPnd:\t0000000000000001\nSigBlk:\t0000000000000000\n") == false)
        #expect(HangupSource.isBlocked(in: "SigBlk:\t0000000000000003\n") == true)
        #expect(HangupSource.isBlocked(in: "Name:\tx\n") == nil)
        var fact = HangupFact()
        fact.take(false, at: .now)
        #expect(fact.reloadRequestedAt != nil && fact.description == "a reload was requested")
        fact.take(true, at: .now)
        #expect(fact.isTerminalClosed && fact.description == "the terminal was closed")
        // No process sends SIGHUP here: check the signals themselves.
        let subscription = Signal.merge(
            Hangups(in: stage.host).reloadRequested, Hangups(in: stage.host).terminalClosed
        ).makeAsyncIterator()
        #expect(stage.isOpen)
        withExtendedLifetime(subscription) {}
    }
}

@Suite("Missing system sources", .hangLimit)
struct MissingFactsTests {
    @Test("without netlink there is one fact with the reason, and the iteration continues")
    func netlink() async throws {
        let stage = Stage(network: { loop in
            NetworkMonitor(
                loop, onEpoch: { _ in },
                open: { () throws(NetlinkError) in throw NetlinkError(action: "connect to the kernel", number: 13) })
        })
        try await expectOne(Reachability(of: .elsewhere, in: stage.host).changes) { fact in
            fact.isReachable && fact.unknownBecause?.contains("AF_NETLINK") == true
        }
    }

    @Test("without a bus, sleep, sessions and bus events report it, and use the bus when it appears")
    func bus() async throws {
        try await BusBed.with { bed in
            let stage = Stage(address: { _ in bed.address })
            let host = stage.host
            let match = try BusMatch(sender: "org.example.Service", interface: "org.example.Test", member: "Said")
            let events = BusEvents(matching: match, of: .session, in: host)
            var causes = events.signal.causes.makeAsyncIterator()
            var sleeps = Sleep(in: host).changes.makeAsyncIterator()
            var sessions = Sessions(of: .local, in: host).changes.makeAsyncIterator()
            var subscriptionStates = events.changes.makeAsyncIterator()
            try await reach(&sleeps) { $0.logind.isMissing }
            try await reach(&sessions) { $0.logind.isMissing && $0.sessions.isEmpty }
            try await reach(&subscriptionStates) { if case .disconnected = $0 { true } else { false } }

            try await bed.start()
            let peer = try await BusPeer.connected(to: bed.address)
            await peer.setSessions(logindSession("3", active: true))
            try await peer.own("org.freedesktop.login1")
            try await peer.own("org.example.Service")
            try await reach(&sleeps) { $0.logind == .available }
            try await reach(&sessions) { $0.description == "session 3 of alice active, unlocked" }
            try await reach(&subscriptionStates) { if case .active(sender: .some) = $0 { true } else { false } }
            try await peer.emit("Said", of: "org.example.Test", at: "/org/example")
            #expect(await causes.next(isolation: nil)?.first?.first.signal == "dbus")
            await peer.leave()
        }
    }

    @Test("without a descriptor for the loop each source has one fact with the reason, and its signal never fires")
    func noLoop() async throws {
        let error = SystemCallError("epoll_create1", errno: EMFILE)
        let host = SourceHost(sources: { () throws(SystemCallError) in throw error })
        let text = "limits on open files"
        try await expectOne(Reachability(of: .elsewhere, in: host).changes) {
            $0.isReachable && $0.isAssumed && $0.unknownBecause?.contains(text) == true
        }
        try await expectOne(Sleep(in: host).changes) { $0.logind.hasReason(text) }
        try await expectOne(Sessions(of: .local, in: host).changes) { $0.logind.hasReason(text) }
        try await expectOne(WatchedFile(at: "/etc", in: host).changes) {
            $0.exists && $0.obstacle?.contains(text) == true
        }
        try await expectOne(Hangups(in: host).changes) { $0.obstacle?.contains(text) == true }
        try await expectOne(RepeatingTimer(every: .seconds(1), in: host).changes) {
            $0.obstacle?.contains(text) == true && $0.next == nil
        }
        let match = try BusMatch(interface: "org.example.Test")
        try await expectOne(BusEvents(matching: match, of: .system, in: host).changes) {
            if case .disconnected(let reason) = $0 { reason.contains(text) } else { false }
        }
        let task = Task { for await _ in Reachability(of: .elsewhere, in: host).signal { Issue.record("fired") } }
        task.cancel()
        await task.value
    }

    /// Checks the first fact, and that the sequence does not end before its task is cancelled.
    private func expectOne<Facts: AsyncSequence & Sendable>(
        _ facts: Facts, _ isWanted: @Sendable (Facts.Element) -> Bool
    ) async throws where Facts.Failure == Never {
        var first = facts.makeAsyncIterator()
        let fact = await first.next(isolation: nil)
        #expect(try isWanted(#require(fact)), "\(String(describing: fact))")
        let ended = Mutex(false)
        let task = Task {
            for await _ in facts {}
            ended.withLock { $0 = true }
        }
        // Lets other tasks run: a sequence that ended by itself would have ended after some yields.
        for _ in 0..<20 { await Task.yield() }
        #expect(!ended.withLock { $0 })
        task.cancel()
        await task.value
    }

    private func reach<Iterator: AsyncIteratorProtocol>(
        _ iterator: inout Iterator, _ isWanted: (Iterator.Element) -> Bool
    ) async throws where Iterator.Failure == Never {
        while let fact = await iterator.next(isolation: nil) {
            if isWanted(fact) { return }
        }
        throw CancellationError()
    }
}

extension SleepFact.Availability {
    fileprivate var isMissing: Bool { if case .unavailable = self { true } else { false } }

    fileprivate func hasReason(_ text: String) -> Bool {
        if case .unavailable(let reason) = self { reason.contains(text) } else { false }
    }
}

/// A private registry; its sources have their own loop while they are open.
private final class Stage: Sendable {
    private struct State {
        weak var sources: SystemSources?
        weak var loop: EventLoop?
        var opened = 0
    }

    private let state = Mutex(State())
    private let address: @Sendable (BusConnection.Bus) -> String?
    private let network: @Sendable (EventLoop) -> NetworkMonitor

    init(
        address: @escaping @Sendable (BusConnection.Bus) -> String? = { _ in "unix:path=/nonexistent/bus" },
        network: @escaping @Sendable (EventLoop) -> NetworkMonitor = { NetworkMonitor($0) }
    ) {
        self.address = address
        self.network = network
    }

    var host: SourceHost { SourceHost(sources: { [self] () throws(SystemCallError) in try sources() }) }

    func sources() throws(SystemCallError) -> SystemSources {
        try state.withLock { state throws(SystemCallError) in
            if let sources = state.sources { return sources }
            let own = try DedicatedLoop()
            let sources = SystemSources(own.loop, own, address: address, network: network)
            state.sources = sources
            state.loop = own.loop
            state.opened += 1
            return sources
        }
    }

    var opened: Int { state.withLock { $0.opened } }
    var isOpen: Bool { state.withLock { $0.sources != nil } }

    /// Waits until the thread has released its loop, and so all its descriptors.
    func loopIsGone() async -> Bool { await eventually { state.withLock { $0.loop == nil } } }
}
