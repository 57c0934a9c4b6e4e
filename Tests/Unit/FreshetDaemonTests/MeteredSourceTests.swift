import FreshetControl
import FreshetSystemSignals
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The source of the metered connection")
struct MeteredSourceTests {
    @Test("it exists while a pipeline waits for an unmetered connection or subscribes to the signal")
    func exists() async throws {
        let home = try Home()
        @Sendable func configure(_ refresh: String) throws {
            try home.configure("a", Home.printing("x", to: "a") + "refresh: \(refresh)\n")
        }
        try configure("{on: [start]}")
        _ = try await withDaemon(home) { client in
            func row() throws -> String? { try client.signals().first { $0.name == "metered" }?.name }
            func subscribed() throws -> [String]? { try client.descriptions(["a"]).first?.signals }
            #expect(try row() == nil)
            try configure("{on: [start], metered: wait}")
            _ = try client.reload()
            #expect(try row() != nil)
            #expect(try subscribed()?.contains("metered") == false)
            try configure("{on: [start, metered]}")
            _ = try client.reload()
            #expect(try row() != nil)
            #expect(try subscribed()?.contains("metered") == true)
            try configure("{on: [start], metered: allow}")
            _ = try client.reload()
            #expect(try row() == nil)
        }
    }

    @Test("runs wait for a metered connection and for an answer that is on its way, and for nothing else")
    func obstacle() {
        #expect(MeteredFact.metered(isGuess: false).obstacle == "metered")
        #expect(MeteredFact.metered(isGuess: true).obstacle == "metered (guessed)")
        #expect(MeteredFact.pending.obstacle == "asking NetworkManager")
        #expect(MeteredFact.connecting.obstacle == "NetworkManager is connecting")
        for fact: MeteredFact in [
            .unmetered(isGuess: false), .unmetered(isGuess: true), .unknown, .unavailable(reason: "gone"),
        ] {
            #expect(fact.obstacle == nil)
        }
    }
}
