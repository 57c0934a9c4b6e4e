import Testing

@testable import FreshetControl

@Suite struct ControlEventsTests {
    private func event(_ number: Int64) -> ControlEvent { .signal("network", number: number, at: number) }

    @Test("a queue at its limit loses nothing; with one more event it drops the oldest and reports this first")
    func limit() {
        var queue = EventQueue(limit: 4)
        for number in 1...4 { queue.append(SharedEvent(event(Int64(number)))) }
        #expect(drain(&queue) == (1...4).map { event($0) })
        for number in 1...6 { queue.append(SharedEvent(event(Int64(number)))) }
        #expect(queue.count == 4)
        #expect(drain(&queue) == [.skipped(2, at: 3)] + (3...6).map { event($0) })
        #expect(queue.isEmpty)
    }

    @Test("a queue keeps its order over many rounds and does not grow")
    func rounds() {
        var queue = EventQueue(limit: 3)
        var received: [ControlEvent?] = []
        for number in 1...100 {
            queue.append(SharedEvent(event(Int64(2 * number - 1))))
            queue.append(SharedEvent(event(Int64(2 * number))))
            received.append(queue.popFirst())
            received.append(queue.popFirst())
        }
        #expect(received == (1...200).map { event($0) })
    }

    private func drain(_ queue: inout EventQueue) -> [ControlEvent] {
        var events: [ControlEvent] = []
        while let event = queue.popFirst() { events.append(event) }
        return events
    }

    @Test("an observer receives the events that are published after its creation")
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

    @Test("the history keeps events up to a limit, and shows whether events are missing")
    func memory() {
        var memory = EventHistory(limit: 3)
        for number: Int64 in 1...3 { memory.append(.signal("network", number: number, at: number)) }
        #expect(memory.isWhole && times(memory) == [1, 2, 3])
        for number: Int64 in 4...5 { memory.append(.signal("network", number: number, at: number)) }
        #expect(!memory.isWhole && times(memory) == [3, 4, 5])
    }

    private func times(_ memory: EventHistory) -> [Int64] {
        memory.page(from: 0, limit: memory.limit).events.map(\.at)
    }

    @Test(
        "the history is read page by page, and a page with dropped events begins with the oldest kept event")
    func pages() {
        var memory = EventHistory(limit: 4)
        for number: Int64 in 0...5 { memory.append(event(number)) }
        #expect(memory.numbers == 2..<6)
        let first = memory.page(from: 2, limit: 3)
        #expect(first.events == (2...4).map(event) && first.start == 2 && first.next == 5)
        for number: Int64 in 6...10 { memory.append(event(number)) }
        let second = memory.page(from: first.next, limit: 3)
        #expect(second.events == (7...9).map(event) && second.start == 7 && second.next == 10)
        let last = memory.page(from: second.next, limit: 3)
        #expect(last.events == [event(10)] && last.next == 11)
        #expect(memory.page(from: 11, limit: 3).events.isEmpty && memory.page(from: 99, limit: 3).next == 11)
        #expect(EventHistory(limit: 4).page(from: 0, limit: 3).events.isEmpty)
    }

    @Test("the queues of observers share the events, so that an unread one costs the daemon little")
    func sharing() {
        #expect(MemoryLayout<SharedEvent>.stride * 2 * ControlEvents.queueLimit <= 8 << 10)
    }

    @Test("the history omits states that the events of a run imply, and keeps all others")
    func statesOfRuns() {
        var memory = EventHistory(limit: 10)
        memory.append(.runStarted(RunStatus(number: 1, started: 1), of: "jwks", at: 1))
        memory.append(.state(.loading, of: "jwks", at: 2))
        memory.append(.runEnded(RunStatus(number: 1, started: 1, outcome: .changed), of: "jwks", at: 3))
        memory.append(.state(.loaded, of: "jwks", at: 4))
        memory.append(.state(.waiting, of: "jwks", waitingFor: .network, at: 5))
        memory.append(.state(.loaded, of: "jwks", at: 6))
        memory.append(.state(.loaded, of: "flags", detail: "the copy is older than max-age", at: 7))
        #expect(times(memory) == [1, 3, 5, 6, 7])
    }

    @Test("an initial fact is in the history, but is not published to observers")
    func firstFact() async {
        let events = ControlEvents()
        let observation = events.observe()
        events.remember(.fact("network", "reachable", at: 1))
        events.publish(event(2))
        #expect(await observation.next() == event(2))
        #expect(events.remembered.oldest == 1)
    }

    @Test("a cancelled observer ends, and a released observer is removed")
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

    @Test("an observer that never reads loses all events beyond the limit, and gets their number")
    func slowObserver() async {
        let events = ControlEvents()
        let observation = events.observe()
        let limit = Int64(ControlEvents.queueLimit)
        for number in 1...(limit + 10) { events.publish(event(number)) }
        #expect(await observation.next() == .skipped(10, at: 11))
        #expect(await observation.next() == event(11))
    }
}
