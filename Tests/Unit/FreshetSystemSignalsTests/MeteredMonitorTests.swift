import FreshetSignals
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A real bus with a peer that plays NetworkManager.
@Suite("The monitor of the metered connection", .hangLimit)
struct MeteredMonitorTests {
    @Test("follows NetworkManager: its appearance, metered and unmetered connections, and its end")
    func life() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let monitor = MeteredMonitor(bus: await bed.connection())
            var causes = monitor.becameUnmetered.causes.makeAsyncIterator()
            try await monitor.reach(.unavailable(reason: "NetworkManager does not run"))
            let manager = try await BusPeer.connected(to: bed.address)
            await manager.setNetworkManager(["Metered": .uint32(3), "State": .uint32(70), "Version": .string("1.46.0")])
            try await manager.own("org.freedesktop.NetworkManager")
            try await monitor.reach(.metered(isGuess: true))

            try await manager.changeNetworkManager(["Metered": .uint32(4)])
            #expect(await causes.next(isolation: nil)?.first?.last.detail == "not metered (guessed)")
            #expect(monitor.fact == .unmetered(isGuess: true))
            try await manager.changeNetworkManager(["Metered": .uint32(0), "State": .uint32(40)])
            try await monitor.reach(.connecting)
            try await manager.changeNetworkManager(["Metered": .uint32(1)])
            try await monitor.reach(.metered(isGuess: false))

            // It is restarted while the connection changes.
            await manager.leave()
            try await monitor.reach(.unavailable(reason: "NetworkManager does not run"))
            let next = try await BusPeer.connected(to: bed.address)
            await next.setNetworkManager(["Metered": .uint32(2), "State": .uint32(70)])
            try await next.own("org.freedesktop.NetworkManager")
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.last.detail == "not metered" && cause?.last.number == 2)
            #expect(monitor.fact == .unmetered(isGuess: false))
            #expect(await next.networkManagerReads == 1)
            await next.leave()
        }
    }

    @Test("ignores other senders and interfaces, and values of other types are unknown")
    func others() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let manager = try await BusPeer.connected(to: bed.address)
            await manager.setNetworkManager(["Metered": .uint32(1)])
            try await manager.own("org.freedesktop.NetworkManager")
            let bus = await bed.connection()
            let monitor = MeteredMonitor(bus: bus)
            try await monitor.reach(.metered(isGuess: false))
            let forger = try await BusPeer.connected(to: bed.address)
            try await forger.changeNetworkManager(["Metered": .uint32(2)])
            try await manager.changeNetworkManager(
                ["Metered": .uint32(2)], of: "org.freedesktop.NetworkManager.Device")
            try await forger.changeNetworkManager(["Metered": .string("no")])
            try await bus.settle()
            #expect(monitor.fact == .metered(isGuess: false) && monitor.minorChanges == 0)
            try await manager.changeNetworkManager(["Metered": .string("no")])
            try await monitor.reach(.unknown)
            await forger.leave()
            await manager.leave()
        }
    }

    @Test("a flood of messages changes the fact once, fires once and causes no request")
    func flood() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let manager = try await BusPeer.connected(to: bed.address)
            await manager.setNetworkManager(["Metered": .uint32(1)])
            try await manager.own("org.freedesktop.NetworkManager")
            let monitor = MeteredMonitor(bus: await bed.connection())
            try await monitor.reach(.metered(isGuess: false))
            var causes = monitor.becameUnmetered.causes.makeAsyncIterator()
            try await manager.changeNetworkManager(["Metered": .uint32(2)], times: 5_000)
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            // The last message of the flood has been handled when another one is.
            try await manager.changeNetworkManager(["Metered": .uint32(3)])
            try await monitor.reach(.metered(isGuess: true))
            #expect(monitor.minorChanges == 5_000)
            try await manager.changeNetworkManager(["Metered": .uint32(4)])
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.count == 1 && cause?.last.number == 2)
            #expect(await manager.networkManagerReads == 1)
            await manager.leave()
        }
    }

    @Test("reports that there is no bus, and uses a bus that appears and returns")
    func withoutBus() async throws {
        try await BusBed.with { bed in
            let monitor = MeteredMonitor(bus: await bed.connection())
            try await monitor.reach {
                if case .unavailable(let reason) = $0 { reason.contains("no bus") } else { false }
            }
            for metered: UInt32 in [1, 3] {
                try await bed.start()
                let manager = try await BusPeer.connected(to: bed.address)
                await manager.setNetworkManager(["Metered": .uint32(metered)])
                try await manager.own("org.freedesktop.NetworkManager")
                try await monitor.reach(.metered(isGuess: metered == 3))
                await bed.stop()
                try await monitor.reach { if case .unavailable = $0 { true } else { false } }
                await manager.leave()
            }
        }
    }
}

extension MeteredMonitor {
    fileprivate func reach(_ fact: MeteredFact) async throws { try await reach { $0 == fact } }

    /// Waits for a fact; the suite's time limit is the deadline.
    fileprivate func reach(_ isWanted: @Sendable (MeteredFact) -> Bool) async throws {
        for await fact in facts where isWanted(fact) { return }
        throw CancellationError()
    }
}
