import Testing

@testable import FreshetSystemSignals

/// The machine as an object, so that its events can be in expectations.
private final class Subject {
    private(set) var machine = PowerMachine()
    var fact: PowerFact { machine.fact }
    var request: UInt64 { machine.request }

    func serviceBecame(_ service: PowerMachine.Service) -> Bool { machine.serviceBecame(service) }
    func answered(_ fact: PowerFact, request: UInt64) -> Bool { machine.answered(fact, request: request) }
    func failed(reason: String, request: UInt64) { machine.failed(reason: reason, request: request) }
    func waitIsOver() { machine.waitIsOver() }
    func changed(_ change: UPowerMessage.Change) -> Bool { machine.changed(change) }
}

@Suite("Whether the machine runs on battery")
struct PowerMachineTests {
    private static func change(_ value: BusValue?, invalidated: [String] = []) -> UPowerMessage.Change {
        let changed = value.map { [BusValue.entry(key: .string("OnBattery"), value: .variant($0))] } ?? []
        return UPowerMessage.change([
            .string(UPowerMessage.name), .array(changed), .array(invalidated.map(BusValue.string)),
        ])
    }

    private static func reply(_ value: BusValue) -> PowerFact {
        UPowerMessage.fact([.array([.entry(key: .string("OnBattery"), value: .variant(value))])])
    }

    private func known(_ value: Bool) -> Subject {
        let machine = Subject()
        #expect(machine.serviceBecame(.received(sender: ":1.5")))
        #expect(!machine.answered(Self.reply(.boolean(value)), request: machine.request))
        return machine
    }

    @Test("the reply and each change are the fact; other types are unknown")
    func facts() {
        let machine = known(true)
        #expect(machine.fact == .battery)
        #expect(!machine.changed(Self.change(.boolean(false))) && machine.fact == .mains)
        #expect(!machine.changed(Self.change(nil)) && machine.fact == .mains, "another property")
        #expect(!machine.changed(Self.change(.string("yes"))) && machine.fact == .unknown)
        #expect(UPowerMessage.fact([]) == .unknown && UPowerMessage.fact([.string("x")]) == .unknown)
    }

    @Test("a change without its value is read")
    func vague() {
        for change in [Self.change(nil, invalidated: ["OnBattery"]), UPowerMessage.change(nil)] {
            let machine = known(false)
            #expect(machine.changed(change))
            #expect(!machine.changed(Self.change(.boolean(false))), "the reply is newer")
            #expect(!machine.answered(.battery, request: machine.request) && machine.fact == .battery)
        }
        let machine = known(false)
        #expect(machine.changed(.vague) && !machine.changed(.vague))
        #expect(machine.answered(.battery, request: machine.request), "the reply may be older than the second change")
        #expect(!machine.answered(.mains, request: machine.request) && machine.fact == .mains)
    }

    @Test("a lost UPower, a failed request and late replies")
    func lost() {
        let machine = known(true)
        #expect(!machine.serviceBecame(.missing(reason: "gone")))
        #expect(machine.fact == .unavailable(reason: "gone"))
        #expect(!machine.changed(Self.change(.boolean(false))) && machine.fact == .unavailable(reason: "gone"))
        #expect(machine.serviceBecame(.received(sender: ":1.9")) && machine.fact == .pending)
        #expect(!machine.answered(.mains, request: machine.request - 1) && machine.fact == .pending)
        machine.failed(reason: "slow", request: machine.request)
        #expect(machine.fact == .unavailable(reason: "slow"))
        #expect(machine.changed(Self.change(.boolean(false))), "the next message causes another attempt")
        #expect(!machine.answered(.mains, request: machine.request) && machine.fact == .mains)
        #expect(!machine.serviceBecame(.received(sender: ":1.9")), "the same")
    }

    @Test("the wait for the fact ends after one request's time, also if the owner changes; a late reply counts")
    func otherOwners() {
        let machine = Subject()
        #expect(machine.serviceBecame(.received(sender: ":1.5")))
        #expect(machine.serviceBecame(.received(sender: ":1.6")) && machine.fact == .pending)
        machine.failed(reason: "gone", request: machine.request - 1)
        #expect(machine.fact == .pending)
        machine.waitIsOver()
        #expect(machine.fact == .unavailable(reason: "UPower does not answer"))
        #expect(!machine.answered(.battery, request: machine.request) && machine.fact == .battery)
        machine.waitIsOver()
        #expect(machine.fact == .battery)
        // A new wait.
        #expect(machine.serviceBecame(.received(sender: ":1.7")) && machine.fact == .pending)
        machine.waitIsOver()
        machine.failed(reason: "slow", request: machine.request)
        #expect(machine.fact == .unavailable(reason: "slow"))
        // The connection to the bus is not one of UPower's answers.
        #expect(!machine.serviceBecame(.pending))
        machine.waitIsOver()
        #expect(machine.fact == .pending)
    }
}
