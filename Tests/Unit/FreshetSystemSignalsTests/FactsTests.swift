import FreshetEventLoop
import FreshetSignals
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

@Suite("Sources in a line", .hangLimit)
struct FactsTests {
    @Test("the network: the present fact comes first, from this machine's own kernel")
    func network() async throws {
        let fact = await Reachability(of: .address(try address("127.0.0.1"))).changes.first { _ in true }
        #expect(try #require(fact).isReachable)
        #expect(fact?.paths.first?.interfaceName == "lo")
        // The short form asks for elsewhere, and has an answer too, whichever it is.
        #expect(await Reachability.changes.first { _ in true }?.target == .elsewhere)
    }

    @Test("a description costs nothing, and the last iteration closes what the first one opened: thread, loop, sources")
    func closed() async throws {
        let stage = Stage()
        let place = stage.place
        let reachability = Reachability(of: .elsewhere, in: place)
        let file = WatchedFile(at: "/etc/hostname", in: place)
        let signal = Signal.merge(reachability.signal, file.signal, Sleep(in: place).resumed)
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
        #expect(await stage.loopIsGone(), "its thread has it still")
        // And anew.
        #expect(await reachability.changes.first { _ in true } != nil)
        #expect(stage.opened == 2)
        #expect(await stage.loopIsGone())
    }

    @Test("several who listen to one thing open it once")
    func shared() async throws {
        let stage = Stage()
        let sources = try stage.sources()
        let network = sources.network()
        let place = stage.place
        var one = Reachability(of: .elsewhere, in: place).changes.makeAsyncIterator()
        var other = Reachability(of: .elsewhere, in: place).changes.makeAsyncIterator()
        #expect(await one.next(isolation: nil) == other.next(isolation: nil))
        #expect(network.counts.listings >= 1)
        #expect(sources.network() === network)
        let watch = network.watch(.elsewhere)
        #expect(watch === sources.network().watch(.elsewhere))
    }

    @Test("a task that is cancelled ends the iteration, and that closes what it had opened")
    func cancelled() async throws {
        let stage = Stage()
        let started = SignalSource("started")
        var begun = started.signal.makeAsyncIterator()
        let task = Task {
            var facts = 0
            for await _ in Reachability(of: .elsewhere, in: stage.place).changes {
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

    @Test("a program's own loop is used, and stays its own")
    func ownLoop() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "facts-test")
        defer { loop.stop() }
        var ticks = Timers.every(.milliseconds(1), on: loop).signal.makeAsyncIterator()
        #expect(await ticks.next(isolation: nil) != nil)
        #expect(await Sleep(on: loop).changes.first { _ in true } != nil)
        #expect(await Reachability(on: loop).changes.first { _ in true } != nil)
        // It still turns.
        await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
    }

    @Test("a file: what is there first, then each change, and the signal with its reason")
    func file() async throws {
        let stage = Stage()
        let directory = try TemporaryDirectory()
        let file = WatchedFile(at: directory.path("a"), in: stage.place)
        var changes = file.changes.makeAsyncIterator()
        var causes = file.signal.causes.makeAsyncIterator()
        #expect(await changes.next(isolation: nil) == FileFact(exists: false))
        close(open(file.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(await changes.next(isolation: nil)?.exists == true)
        #expect(await causes.next(isolation: nil)?.first?.first.signal == "file \(directory.path)/a")
        #expect(WatchedFile(at: "a").path.hasSuffix("/a") && WatchedFile(at: "a").path.hasPrefix("/"))
    }

    @Test("a timer fires at multiples of its period, once for what was missed, and its fact says when next")
    func timer() async throws {
        let clock = ManualAlarmClock()
        let stage = Stage()
        let timer = RepeatingTimer(every: .seconds(10), in: stage.place, clock: { _ in clock })
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
        #expect(await timer.changes.first { _ in true } == TimerFact(next: start + .seconds(65)), "it begins anew")
        #expect(Timers.every(.zero).period == RepeatingTimer.shortestPeriod)
    }

    @Test("SIGHUP that is not blocked is said to be")
    func hangups() async throws {
        let stage = Stage()
        // The thread that runs tests is as it was when the program started.
        #expect(await Hangups(in: stage.place).changes.first { _ in true }?.obstacle == HangupFact.notBlocked)
        #expect(HangupSource.isBlocked(in: "Name:\tx\nSigPnd:\t0000000000000001\nSigBlk:\t0000000000000000\n") == false)
        #expect(HangupSource.isBlocked(in: "SigBlk:\t0000000000000003\n") == true)
        #expect(HangupSource.isBlocked(in: "Name:\tx\n") == nil)
        var fact = HangupFact()
        fact.take(false, at: .now)
        #expect(fact.reloadRequestedAt != nil && fact.description == "a reload was asked for")
        fact.take(true, at: .now)
        #expect(fact.isTerminalClosed && fact.description == "the terminal was closed")
        // Nobody sends one: it is the signal itself that is looked at.
        let subscription = Signal.merge(
            Hangups(in: stage.place).reloadRequested, Hangups(in: stage.place).terminalClosed
        ).makeAsyncIterator()
        #expect(stage.isOpen)
        withExtendedLifetime(subscription) {}
    }
}

@Suite("Sources in a line, and what is missing", .hangLimit)
struct MissingFactsTests {
    @Test("without netlink there is one fact, which says so, and the iteration goes on")
    func netlink() async throws {
        let stage = Stage(network: { loop in
            NetworkMonitor(
                loop, onEpoch: { _ in },
                open: { () throws(NetlinkError) in throw NetlinkError(action: "connect to the kernel", number: 13) })
        })
        try await expectOne(Reachability(of: .elsewhere, in: stage.place).changes) { fact in
            fact.isReachable && fact.unknownBecause?.contains("AF_NETLINK") == true
        }
    }

    @Test("without a bus: sleep, sessions and the bus's own signals say so, and hear it when it comes")
    func bus() async throws {
        try await BusBed.with { bed in
            let stage = Stage(address: { _ in bed.address })
            let place = stage.place
            let match = try BusMatch(sender: "org.example.Service", interface: "org.example.Test", member: "Said")
            let events = BusEvents(matching: match, of: .session, in: place)
            var causes = events.signal.causes.makeAsyncIterator()
            var sleeps = Sleep(in: place).changes.makeAsyncIterator()
            var sessions = Sessions(of: .local, in: place).changes.makeAsyncIterator()
            var standings = events.changes.makeAsyncIterator()
            try await reach(&sleeps) { $0.logind.isMissing }
            try await reach(&sessions) { $0.logind.isMissing && $0.sessions.isEmpty }
            try await reach(&standings) { if case .disconnected = $0 { true } else { false } }

            try await bed.start()
            let peer = try await BusPeer.connected(to: bed.address)
            await peer.setSessions(logindSession("3", active: true))
            try await peer.own("org.freedesktop.login1")
            try await peer.own("org.example.Service")
            try await reach(&sleeps) { $0.logind == .available }
            try await reach(&sessions) { $0.description == "session 3 of alice active, unlocked" }
            try await reach(&standings) { if case .inForce(sender: .some) = $0 { true } else { false } }
            try await peer.emit("Said", of: "org.example.Test", at: "/org/example")
            #expect(await causes.next(isolation: nil)?.first?.first.signal == "dbus")
            await peer.leave()
        }
    }

    @Test("without a descriptor for the loop each has one fact that says so, and goes on; its signal is silent")
    func noLoop() async throws {
        let error = SystemCallError("epoll_create1", errno: EMFILE)
        let place = SourceHost(sources: { () throws(SystemCallError) in throw error })
        let text = "limits on open files"
        try await expectOne(Reachability(of: .elsewhere, in: place).changes) {
            $0.isReachable && $0.isAssumed && $0.unknownBecause?.contains(text) == true
        }
        try await expectOne(Sleep(in: place).changes) { $0.logind.says(text) }
        try await expectOne(Sessions(of: .local, in: place).changes) { $0.logind.says(text) }
        try await expectOne(WatchedFile(at: "/etc", in: place).changes) {
            $0.exists && $0.obstacle?.contains(text) == true
        }
        try await expectOne(Hangups(in: place).changes) { $0.obstacle?.contains(text) == true }
        try await expectOne(RepeatingTimer(every: .seconds(1), in: place).changes) {
            $0.obstacle?.contains(text) == true && $0.next == nil
        }
        let match = try BusMatch(interface: "org.example.Test")
        try await expectOne(BusEvents(matching: match, of: .system, in: place).changes) {
            if case .disconnected(let reason) = $0 { reason.contains(text) } else { false }
        }
        let task = Task { for await _ in Reachability(of: .elsewhere, in: place).signal { Issue.record("it fired") } }
        task.cancel()
        await task.value
    }

    /// Its first fact is the one that is wanted; it does not end before its task is cancelled.
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
        // Its turns: what would end by itself has ended after some.
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

    fileprivate func says(_ text: String) -> Bool {
        if case .unavailable(let reason) = self { reason.contains(text) } else { false }
    }
}

/// A registry of its own, whose sources are on a loop of their own while they are open.
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

    var place: SourceHost { SourceHost(sources: { [self] () throws(SystemCallError) in try sources() }) }

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

    /// Waits until the thread has let go of its loop, and so of all its descriptors.
    func loopIsGone() async -> Bool { await eventually { state.withLock { $0.loop == nil } } }
}
