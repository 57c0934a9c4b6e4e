import Testing

@testable import FreshetControl

@Suite struct ControlEventsTests {
    private func event(_ number: Int64) -> ControlEvent { .signal("network", number: number, at: number) }

    @Test("a queue at its limit loses nothing, one event more loses the oldest and says so first")
    func limit() {
        var queue = EventQueue(limit: 4)
        for number in 1...4 { queue.append(event(Int64(number))) }
        #expect(drain(&queue) == (1...4).map { event($0) })
        for number in 1...6 { queue.append(event(Int64(number))) }
        #expect(queue.count == 4)
        #expect(drain(&queue) == [.skipped(2, at: 3)] + (3...6).map { event($0) })
        #expect(queue.isEmpty)
    }

    @Test("a queue keeps its order over many rounds and does not grow")
    func rounds() {
        var queue = EventQueue(limit: 3)
        var heard: [ControlEvent?] = []
        for number in 1...100 {
            queue.append(event(Int64(2 * number - 1)))
            queue.append(event(Int64(2 * number)))
            heard.append(queue.popFirst())
            heard.append(queue.popFirst())
        }
        #expect(heard == (1...200).map { event($0) })
    }

    private func drain(_ queue: inout EventQueue) -> [ControlEvent] {
        var events: [ControlEvent] = []
        while let event = queue.popFirst() { events.append(event) }
        return events
    }

    @Test("an observer hears what is published from its beginning on")
    func observing() async {
        let events = ControlEvents()
        events.publish(event(1))
        let observation = events.observe()
        events.publish(event(2))
        #expect(await observation.next() == event(2))
        async let next = observation.next()
        events.publish(event(3))
        #expect(await next == event(3))
    }

    @Test("what happens is remembered for who asks later, up to a limit, and it is known whether something is missing")
    func memory() {
        var memory = EventHistory(limit: 3)
        for number: Int64 in 1...3 { memory.append(.signal("network", number: number, at: number)) }
        #expect(memory.isWhole && memory.events.map(\.at) == [1, 2, 3])
        for number: Int64 in 4...5 { memory.append(.signal("network", number: number, at: number)) }
        #expect(!memory.isWhole && memory.events.map(\.at) == [3, 4, 5])
    }

    @Test("a state that the events of a run tell is not remembered, any other is")
    func statesOfRuns() {
        var memory = EventHistory(limit: 10)
        memory.append(.runStarted(RunStatus(number: 1, started: 1), of: "jwks", at: 1))
        memory.append(.state(.loading, of: "jwks", at: 2))
        memory.append(.runEnded(RunStatus(number: 1, started: 1, outcome: .changed), of: "jwks", at: 3))
        memory.append(.state(.loaded, of: "jwks", at: 4))
        memory.append(.state(.waiting, of: "jwks", waitingFor: .network, at: 5))
        memory.append(.state(.loaded, of: "jwks", at: 6))
        memory.append(.state(.loaded, of: "flags", detail: "the copy is older than max-age", at: 7))
        #expect(memory.events.map(\.at) == [1, 3, 5, 6, 7])
    }

    @Test("a fact that was so from the beginning is remembered, and no news to who observes")
    func firstFact() async {
        let events = ControlEvents()
        let observation = events.observe()
        events.remember(.fact("network", "reachable", at: 1))
        events.publish(event(2))
        #expect(await observation.next() == event(2))
        #expect(events.recent().events.map(\.at).first == 1)
    }

    @Test("a cancelled observer ends, and a released one is forgotten")
    func ending() async {
        let events = ControlEvents()
        let ended = await withTaskGroup(of: ControlEvent?.self) { group in
            let observation = events.observe()
            group.addTask { await observation.next() }
            group.cancelAll()
            return await group.next()
        }
        #expect(ended == .some(nil))
        #expect(!events.isObserved)
    }

    @Test("an observer that never reads loses all but the limit, and learns how many")
    func slowObserver() async {
        let events = ControlEvents()
        let observation = events.observe()
        let limit = Int64(ControlEvents.queueLimit)
        for number in 1...(limit + 10) { events.publish(event(number)) }
        #expect(await observation.next() == .skipped(10, at: 11))
        #expect(await observation.next() == event(11))
    }
}
