import FreshetSignals
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
}

extension PowerMonitor {
    /// Waits for a fact; the suite's time limit is the deadline.
    fileprivate func reach(_ wanted: PowerFact) async throws {
        for await fact in facts where fact == wanted { return }
        throw CancellationError()
    }
}
