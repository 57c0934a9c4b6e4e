import FreshetSignals
import Glibc
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A real bus with a peer that plays UPower.
@Suite("The monitor of the power supply", .hangLimit)
struct PowerMonitorTests {
    @Test("follows UPower: its appearance, battery and mains power, and its end")
    func life() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let monitor = PowerMonitor(bus: await bed.connection())
            try await monitor.reach(.unavailable(reason: "UPower does not run"))
            let power = try await BusPeer.connected(to: bed.address)
            await power.setUPower(onBattery: .boolean(true))
            try await power.own("org.freedesktop.UPower")
            try await monitor.reach(.battery)
            try await power.changeUPower(onBattery: .boolean(false))
            try await monitor.reach(.mains)
            let forger = try await BusPeer.connected(to: bed.address)
            try await forger.changeUPower(onBattery: .boolean(true))
            try await power.changeUPower(onBattery: .uint32(1))
            try await monitor.reach(.unknown)
            await forger.leave()
            await power.leave()
            try await monitor.reach(.unavailable(reason: "UPower does not run"))
        }
    }

    @Test("does not wait longer for an answer if UPower's name has other owners meanwhile, without a gap")
    func ownersWithoutGap() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let (name, timeout) = ("org.freedesktop.UPower", Duration.milliseconds(400))
            let monitor = PowerMonitor(bus: await bed.connection(), timeout: timeout)
            var peers = [
                try await BusPeer.connected(to: bed.address), try await BusPeer.connected(to: bed.address),
            ]
            for peer in peers {
                await peer.setMute(true)
                await peer.setUPower(onBattery: .boolean(true))
            }
            try await peers[0].own(name)
            try await peers[1].own(name, queues: true)
            // Each owner has a part of the time only.
            let isOver = try await eventually {
                try await peers[0].disown(name)
                try await peers[0].own(name, queues: true)
                peers.swapAt(0, 1)
                poll(nil, 0, 40)
                return monitor.fact == .unavailable(reason: "UPower does not answer")
            }
            #expect(isOver, "\(monitor.fact)")
            for peer in peers { await peer.setMute(false) }
            try await peers[0].disown(name)
            try await monitor.reach(.battery)
            for peer in peers { await peer.leave() }
        }
    }
}

extension PowerMonitor {
    /// Waits for a fact; the suite's time limit is the deadline.
    fileprivate func reach(_ wanted: PowerFact) async throws {
        for await fact in facts where fact == wanted { return }
        throw CancellationError()
    }
}
