import FreshetEventLoop
import FreshetSignals
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// Clocks that sleep on request.
private final class ManualClocks: Sendable {
    private let slept = Mutex(Duration.zero)

    func sleep(_ duration: Duration) { slept.withLock { $0 += duration } }

    func read() -> ClockReading {
        let boot: Duration = .seconds(1_000) + slept.withLock { $0 }
        return ClockReading(
            monotonic: .seconds(1_000), boot: boot, realtime: boot + .seconds(1_700_000_000), boot: boot,
            monotonic: .seconds(1_000))
    }
}

/// A real bus with a peer that plays logind.
@Suite("The sleep monitor", .hangLimit)
struct SleepMonitorTests {
    @Test("runs, at a jump of the clocks, the hook, the fact, the signal's subscribers, and then overdue timers")
    func order() async throws {
        try await withBusLoop { loop in
            let clocks = ManualClocks()
            let log = Recorder<String>()
            let holder = Mutex<SleepMonitor?>(nil)
            let monitor = SleepMonitor(loop, bus: nil) {
                log.add("hook, awake since \(holder.withLock { $0 }?.fact.awakeSince.map { _ in "then" } ?? "start")")
            } read: {
                clocks.read()
            }
            holder.withLock { $0 = monitor }
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let (ready, begin) = AsyncStream.makeStream(of: Void.self)
            let subscriber = Task(executorPreference: loop) {
                var signals = monitor.resumed.causes.makeAsyncIterator()
                begin.yield()
                let cause = await signals.next(isolation: nil)?.first
                log.add("heard \(cause?.first.signal ?? "") \(cause?.first.detail ?? ""), \(monitor.fact)")
            }
            for await _ in ready { break }
            let timer = LoopTimer(loop) {
                log.add("timer")
                end.yield()
            }
            loop.perform {
                clocks.sleep(.seconds(90))
                timer.arm(at: .now)
            }
            for await _ in over { break }
            await subscriber.value
            #expect(
                log.values == [
                    "hook, awake since start", "heard resume slept 90.0 s, awake, after 90.0 s of sleep", "timer",
                ])
            #expect(monitor.fact.logind == .unavailable(reason: "the system bus is not used"))
            holder.withLock { $0 = nil }
        }
    }

    @Test("follows logind's messages: a failed suspend fires once, two fire twice")
    func logind() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let monitor = SleepMonitor(bed.loop, bus: await bed.connection())
            try await monitor.reach { $0.logind == .unavailable(reason: "logind does not run") }
            let peer = try await BusPeer.connected(to: bed.address)
            try await peer.own("org.freedesktop.login1")
            try await monitor.reach { $0.logind == .available }
            var causes = monitor.resumed.causes.makeAsyncIterator()
            for _ in 0..<2 {
                try await peer.prepareForSleep(true)
                try await monitor.reach { $0.isGoingToSleep }
                try await peer.prepareForSleep(false)
                let cause = await causes.next(isolation: nil)?.first
                #expect(cause?.count == 1 && cause?.first.detail == "awake again according to logind")
                #expect(!monitor.fact.isGoingToSleep && monitor.fact.awakeSince != nil)
                #expect(monitor.fact.lastSleep == nil)
            }
            await peer.leave()
            try await monitor.reach { $0.logind != .available }
        }
    }

    @Test("ignores senders other than logind")
    func forged() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let monitor = SleepMonitor(bed.loop, bus: bus)
            let logind = try await BusPeer.connected(to: bed.address)
            let forger = try await BusPeer.connected(to: bed.address)
            try await logind.own("org.freedesktop.login1")
            try await monitor.reach { $0.logind == .available }
            let name = try #require(await bed.run { bus.uniqueName })
            var causes = monitor.resumed.causes.makeAsyncIterator()
            for destination in [nil, name] {
                try await forger.prepareForSleep(true, to: destination)
                try await forger.prepareForSleep(false, to: destination)
            }
            // Received after all of these.
            try await bus.settle()
            #expect(!monitor.fact.isGoingToSleep && monitor.fact.awakeSince == nil)
            try await logind.prepareForSleep(true)
            try await logind.prepareForSleep(false)
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            await logind.leave()
            await forger.leave()
        }
    }

    @Test("reads logind's property after a bus restart between (true) and (false), and misses no resume")
    func restarted() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let monitor = SleepMonitor(bed.loop, bus: await bed.connection())
            let first = try await BusPeer.connected(to: bed.address)
            try await first.own("org.freedesktop.login1")
            try await monitor.reach { $0.logind == .available }
            var causes = monitor.resumed.causes.makeAsyncIterator()
            try await first.prepareForSleep(true)
            try await monitor.reach { $0.isGoingToSleep }
            await bed.stop()
            try await monitor.reach { $0.logind != .available }
            await first.leave()
            // (false) is sent while there is no bus.
            try await bed.start()
            let second = try await BusPeer.connected(to: bed.address)
            try await second.own("org.freedesktop.login1")
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            #expect(!monitor.fact.isGoingToSleep)
            // And vice versa: (true) is missed.
            await second.setPreparing(true)
            await bed.stop()
            try await monitor.reach { $0.logind != .available }
            await second.leave()
            try await bed.start()
            let third = try await BusPeer.connected(to: bed.address)
            await third.setPreparing(true)
            try await third.own("org.freedesktop.login1")
            try await monitor.reach { $0.isGoingToSleep }
            try await third.prepareForSleep(false)
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            await third.leave()
        }
    }

    @Test("counts a jump of the clocks and logind's message as one resume")
    func together() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let clocks = ManualClocks()
            let bus = await bed.connection()
            let hooks = Recorder<Int>()
            let monitor = SleepMonitor(bed.loop, bus: bus) {
                hooks.add(1)
            } read: {
                clocks.read()
            }
            let peer = try await BusPeer.connected(to: bed.address)
            try await peer.own("org.freedesktop.login1")
            try await monitor.reach { $0.logind == .available }
            var causes = monitor.resumed.causes.makeAsyncIterator()
            for number in 1...3 {
                try await peer.prepareForSleep(true)
                try await monitor.reach { $0.isGoingToSleep }
                clocks.sleep(.seconds(30))
                try await peer.prepareForSleep(false)
                #expect(await causes.next(isolation: nil)?.first?.first.detail == "slept 30.0 s")
                try await bus.settle()
                #expect(hooks.values.count == number)
            }
            await peer.leave()
        }
    }

    @Test("is released when it is no longer used, while its bus may live on")
    func released() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let clocks = ManualClocks()
            let hooks = Recorder<Int>()
            weak var gone: SleepMonitor?
            do {
                let monitor = SleepMonitor(bed.loop, bus: bus) {
                    hooks.add(1)
                } read: {
                    clocks.read()
                }
                gone = monitor
                try await monitor.reach { $0.logind == .unavailable(reason: "logind does not run") }
            }
            clocks.sleep(.seconds(30))
            try await bus.settle()
            #expect(gone == nil && hooks.values.isEmpty)
        }
    }
}

extension SleepMonitor {
    /// Waits for a fact; the suite's time limit is the deadline.
    func reach(_ isWanted: @Sendable (SleepFact) -> Bool) async throws {
        for await fact in facts where isWanted(fact) { return }
        throw CancellationError()
    }
}
