import Testing

@testable import FreshetSystemSignals

@Suite("The machine of the metered connection")
struct MeteredMachineTests {
    /// What NetworkManager says: `Metered`, and whether it is connecting.
    private static func properties(_ metered: BusValue?, connecting: Bool = false) -> [BusValue] {
        var entries: [BusValue] = [.entry(key: .string("State"), value: .variant(.uint32(connecting ? 40 : 70)))]
        if let metered { entries.append(.entry(key: .string("Metered"), value: .variant(metered))) }
        return [.array(entries)]
    }

    private static func change(_ metered: BusValue?, connecting: Bool = false) -> NetworkManagerMessage.Properties {
        NetworkManagerMessage.change([.string("x"), properties(metered, connecting: connecting)[0], .array([])])
    }

    /// A machine whose NetworkManager has said this.
    private func machine(_ metered: BusValue?, connecting: Bool = false) -> MeteredMachine {
        var machine = MeteredMachine()
        #expect(machine.serviceBecame(.received(sender: ":1.2")) == MeteredMachine.Outcome(reads: true))
        let properties = NetworkManagerMessage.properties(Self.properties(metered, connecting: connecting))
        #expect(machine.answered(properties, request: machine.request) == MeteredMachine.Outcome())
        return machine
    }

    @Test("the wait for the fact ends after one request's time, also if the owner changes; a late reply counts")
    func otherOwners() {
        var machine = MeteredMachine()
        _ = machine.serviceBecame(.received(sender: ":1.5"))
        let first = machine.firstRequest
        _ = machine.serviceBecame(.received(sender: ":1.6"))
        #expect(machine.fact == .pending && first != nil && machine.firstRequest == first)
        machine.waitIsOver()
        #expect(machine.fact == .unavailable(reason: "NetworkManager does not answer"))
        let properties = NetworkManagerMessage.properties(Self.properties(.uint32(1)))
        #expect(machine.answered(properties, request: machine.request) == MeteredMachine.Outcome())
        #expect(machine.fact == .metered(isGuess: false))
        machine.waitIsOver()
        #expect(machine.fact == .metered(isGuess: false))
        // The connection to the bus is not one of NetworkManager's answers.
        _ = machine.serviceBecame(.pending)
        machine.waitIsOver()
        #expect(machine.fact == .pending)
    }

    static let values: [(BusValue?, MeteredFact, String)] = [
        (.uint32(0), .unknown, "not known"), (.uint32(1), .metered(isGuess: false), "metered"),
        (.uint32(2), .unmetered(isGuess: false), "not metered"),
        (.uint32(3), .metered(isGuess: true), "metered (guessed)"),
        (.uint32(4), .unmetered(isGuess: true), "not metered (guessed)"),
        (.uint32(5), .unknown, "not known"), (.uint32(.max), .unknown, "not known"),
        (.int32(1), .unknown, "not known"), (.string("yes"), .unknown, "not known"),
        (.variant(.uint32(1)), .unknown, "not known"), (nil, .unknown, "not known"),
    ]

    @Test("reads each value of `Metered`; other numbers, other types and no value are unknown", arguments: values)
    func value(_ value: BusValue?, _ fact: MeteredFact, _ text: String) {
        #expect(machine(value).fact == fact && fact.description == text)
        var other = machine(.uint32(2))
        _ = other.changed(Self.change(value))
        #expect(other.fact == (value == nil ? .unmetered(isGuess: false) : fact))
    }

    @Test("a malformed message changes nothing; a value that is only named is read again")
    func malformed() {
        var machine = machine(.uint32(1))
        for reply: [BusValue] in [[], [.string("x")], [.array([.uint32(1)])]] {
            #expect(NetworkManagerMessage.properties(reply) == NetworkManagerMessage.Properties())
        }
        for arguments: [BusValue]? in [
            nil, [], [.string("x"), .array([])],
            [.string("x"), .array([]), .array([.string("Other"), .string("Metered")])],
            [.string("x"), .array([]), .array([.string("State")])],
        ] {
            #expect(machine.changed(NetworkManagerMessage.change(arguments)) == MeteredMachine.Outcome(reads: true))
            #expect(machine.fact == .metered(isGuess: false))
            // More of them, and other changes, cause no second request.
            #expect(machine.changed(NetworkManagerMessage.change(arguments)) == MeteredMachine.Outcome())
            #expect(machine.changed(Self.change(.uint32(2))) == MeteredMachine.Outcome())
            let reply = NetworkManagerMessage.properties(Self.properties(.uint32(1)))
            #expect(machine.answered(reply, request: machine.request) == MeteredMachine.Outcome())
        }
        #expect(machine.changed(NetworkManagerMessage.change([.string("x"), .array([]), .array([])])).reads == false)
    }

    @Test("fires when the last known connection was metered, whatever was between, and only then")
    func fires() {
        let stories: [([UInt32], [String])] = [
            ([2, 4, 2], []), ([1, 2], ["not metered"]), ([3, 4], ["not metered (guessed)"]), ([1, 3, 1], []),
            ([1, 0, 2], ["not metered"]), ([2, 0, 2], []), ([1, 0, 1, 0], []), ([0, 2], []),
            ([1, 2, 2, 1, 4], ["not metered", "not metered (guessed)"]), ([1, 9, 2], ["not metered"]),
        ]
        for (values, firings) in stories {
            var machine = machine(.uint32(values[0]))
            let fired = values.dropFirst().compactMap { machine.changed(Self.change(.uint32($0))).firing }
            #expect(fired == firings, "\(values)")
            #expect(machine.minor == UInt64(values.count - 1 - firings.count))
        }
    }

    @Test("while NetworkManager connects, an unknown connection is not known yet; afterwards it is read again")
    func connecting() {
        var machine = machine(.uint32(2))
        _ = machine.changed(Self.change(.uint32(0), connecting: true))
        #expect(machine.fact == .connecting && machine.fact.isMetered == nil)
        _ = machine.changed(Self.change(.uint32(1), connecting: true))
        #expect(machine.fact == .metered(isGuess: false))
        _ = machine.changed(Self.change(.uint32(0), connecting: true))
        #expect(machine.changed(Self.change(nil, connecting: false)) == MeteredMachine.Outcome(reads: true))
        #expect(machine.fact == .connecting, "`Metered` follows in another message")
        #expect(machine.changed(Self.change(.uint32(1))) == MeteredMachine.Outcome())
        let reply = NetworkManagerMessage.properties(Self.properties(.uint32(0)))
        #expect(machine.answered(reply, request: machine.request) == MeteredMachine.Outcome())
        #expect(machine.fact == .unknown)
        #expect(machine.changed(Self.change(.uint32(4))).firing == "not metered (guessed)")
    }

    @Test("the loss and return of NetworkManager fire only if the connection is not metered any more")
    func service() {
        for (before, after, firing) in [(UInt32(1), UInt32(2), "not metered"), (2, 2, nil), (1, 1, nil)] {
            var machine = machine(.uint32(before))
            #expect(machine.serviceBecame(.missing(reason: "gone")) == MeteredMachine.Outcome())
            #expect(machine.fact == .unavailable(reason: "gone"))
            #expect(machine.changed(Self.change(.uint32(4))) == MeteredMachine.Outcome(), "a late message")
            #expect(machine.serviceBecame(.pending) == MeteredMachine.Outcome() && machine.fact == .pending)
            #expect(machine.serviceBecame(.received(sender: ":1.9")) == MeteredMachine.Outcome(reads: true))
            let reply = NetworkManagerMessage.properties(Self.properties(.uint32(after)))
            #expect(machine.answered(reply, request: machine.request - 1) == MeteredMachine.Outcome(), "a void reply")
            #expect(machine.fact == .pending)
            #expect(machine.answered(reply, request: machine.request).firing == firing)
            #expect(machine.answered(reply, request: machine.request) == MeteredMachine.Outcome())
        }
    }

    @Test("a NetworkManager that does not answer is unavailable, and is asked again at its next message")
    func silent() {
        var machine = machine(.uint32(1))
        _ = machine.serviceBecame(.received(sender: ":1.3"))
        machine.failed(reason: "late", request: machine.request - 1)
        #expect(machine.fact == .pending)
        machine.failed(reason: "late", request: machine.request)
        #expect(machine.fact == .unavailable(reason: "late"))
        #expect(machine.changed(Self.change(nil)) == MeteredMachine.Outcome(reads: true))
        #expect(machine.fact == .unavailable(reason: "late"))
        let reply = NetworkManagerMessage.properties(Self.properties(.uint32(2)))
        #expect(machine.answered(reply, request: machine.request).firing == "not metered")
    }
}
