import FreshetControl
import FreshetSystemSignals
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The source of the power supply")
struct PowerSourceTests {
    @Test("it exists while a pipeline waits on battery")
    func exists() async throws {
        let home = try Home()
        @Sendable func configure(_ refresh: String) throws {
            try home.configure("a", Home.printing("x", to: "a") + "refresh: \(refresh)\n")
        }
        try configure("{on: [start]}")
        _ = try await withDaemon(home) { client in
            func row() throws -> String? { try client.signals().first { $0.name == "power" }?.name }
            #expect(try row() == nil)
            try configure("{on: [start], power: {on-battery: wait}}")
            _ = try client.reload()
            #expect(try row() != nil)
            #expect(try client.descriptions(["a"]).first?.signals.contains("power") == false)
            try configure("{on: [start], power: {on-battery: allow}}")
            _ = try client.reload()
            #expect(try row() == nil)
        }
    }

    @Test("runs wait on battery and for an answer that is on its way, and for nothing else")
    func obstacle() {
        #expect(PowerFact.battery.obstacle == "on battery")
        #expect(PowerFact.pending.obstacle == "asking UPower")
        for fact: PowerFact in [.mains, .unknown, .unavailable(reason: "gone")] { #expect(fact.obstacle == nil) }
    }
}
