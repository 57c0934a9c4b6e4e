import Testing

@testable import FreshetSignals

@Suite("One upstream iteration for many subscribers, event by event")
struct ShareStateMachineTests {
    struct ValidationError: Error {}
    typealias Machine = ShareStateMachine<Int, ValidationError, String>

    /// A machine whose first subscriber sleeps in `next()`, and whose driver requests an element of the upstream.
    func running(
        replaying count: Int = 0, while lifetime: ShareLifetime = .connected
    ) throws -> (Machine, Machine.Key, Machine.Connection) {
        var machine = Machine(replaying: count, while: lifetime)
        let (key, connects) = machine.subscribe()
        #expect(connects)
        machine.arrive(key)
        let connection = try #require(machine.request(key, isCancelled: false).connection)
        #expect(machine.request(key, isCancelled: false).text == "sleep")
        #expect(machine.sleep(key, "first") == nil)
        machine.driverArrived(connection)
        #expect(machine.pull(connection, isCancelled: false) == .request)
        return (machine, key, connection)
    }

    func deliver(_ element: Int, to machine: inout Machine, by connection: Machine.Connection) -> [String] {
        var woken: [String] = []
        _ = machine.deliver(element, by: connection) { woken.append($0) }
        return woken
    }

    @Test("only the first subscriber connects; the upstream is read after the first request")
    func connecting() throws {
        var machine = Machine(replaying: 1, while: .connected)
        let first = machine.subscribe()
        let second = machine.subscribe()
        #expect(first.connects)
        #expect(!second.connects)
        machine.arrive(second.key)
        let connection = try #require(machine.request(second.key, isCancelled: false).connection)
        machine.driverArrived(connection)
        #expect(machine.pull(connection, isCancelled: false) == .sleep)
        #expect(machine.driverSleeps(connection, "driver") == nil)
        #expect(machine.request(second.key, isCancelled: false).text == "sleep, wake driver")
        #expect(machine.pull(connection, isCancelled: false) == .request)
    }

    @Test("the upstream is read again when all waiting subscribers have taken the element and one requests another")
    func pace() throws {
        var (machine, first, connection) = try running()
        let (second, _) = machine.subscribe()
        machine.arrive(second)
        #expect(machine.request(second, isCancelled: false).text == "sleep")
        #expect(machine.sleep(second, "second") == nil)
        #expect(deliver(1, to: &machine, by: connection) == ["first", "second"])
        machine.driverArrived(connection)
        #expect(machine.pull(connection, isCancelled: false) == .sleep)
        #expect(machine.driverSleeps(connection, "driver") == nil)
        #expect(machine.request(first, isCancelled: false).text == "deliver 1")
        machine.arrive(first)
        #expect(machine.request(first, isCancelled: false).text == "sleep", "the second is still pending")
        #expect(machine.request(second, isCancelled: false).text == "deliver 1, wake driver")
        #expect(machine.pull(connection, isCancelled: false) == .request)
    }

    @Test("a subscriber that leaves before it has taken its element does not block the others")
    func pendingLeaves() throws {
        var (machine, first, connection) = try running()
        let (second, _) = machine.subscribe()
        machine.arrive(second)
        _ = machine.request(second, isCancelled: false)
        _ = deliver(1, to: &machine, by: connection)
        machine.driverArrived(connection)
        #expect(machine.pull(connection, isCancelled: false) == .sleep)
        #expect(machine.driverSleeps(connection, "driver") == nil)
        _ = machine.request(first, isCancelled: false)
        machine.arrive(first)
        _ = machine.request(first, isCancelled: false)
        let action = machine.leave(second)
        #expect(action.wake == "driver")
        #expect(!action.stops)
    }

    @Test("an element between the request and the sleep keeps the subscriber awake")
    func awake() throws {
        var machine = Machine(replaying: 0, while: .connected)
        let (key, _) = machine.subscribe()
        machine.arrive(key)
        let connection = try #require(machine.request(key, isCancelled: false).connection)
        #expect(machine.request(key, isCancelled: false).text == "sleep")
        #expect(deliver(1, to: &machine, by: connection) == [])
        #expect(machine.sleep(key, "waiter") == "waiter")
        #expect(machine.request(key, isCancelled: false).text == "deliver 1")
    }

    @Test("the end and a failure reach each subscriber once, after its waiting elements")
    func ends() throws {
        var (machine, first, connection) = try running(replaying: 1)
        _ = deliver(1, to: &machine, by: connection)
        var woken: [String] = []
        machine.ended(ValidationError(), by: connection) { woken.append($0) }
        #expect(woken == [])
        let (second, connects) = machine.subscribe()
        #expect(!connects)
        #expect(machine.request(first, isCancelled: false).text == "deliver 1")
        machine.arrive(first)
        #expect(machine.request(first, isCancelled: false).text == "fail")
        machine.arrive(first)
        #expect(machine.request(first, isCancelled: false).text == "end")
        machine.arrive(second)
        #expect(machine.request(second, isCancelled: false).text == "deliver 1")
        machine.arrive(second)
        #expect(machine.request(second, isCancelled: false).text == "fail, stop")
        #expect(machine.subscribe().connects)
    }

    @Test("a connected share stops with its last subscriber, and its driver becomes obsolete")
    func stops() throws {
        var (machine, key, old) = try running(replaying: 1)
        _ = deliver(1, to: &machine, by: old)
        machine.driverArrived(old)
        #expect(machine.pull(old, isCancelled: false) == .sleep)
        #expect(machine.driverSleeps(old, "driver") == nil)
        let action = machine.leave(key)
        #expect(action.stops)
        #expect(action.wake == "driver")
        #expect(action.released == [1])
        #expect(machine.pull(old, isCancelled: false) == .finish)
        let (next, connects) = machine.subscribe()
        #expect(connects)
        machine.arrive(next)
        let new = try #require(machine.request(next, isCancelled: false).connection)
        #expect(new != old)
        #expect(machine.pull(old, isCancelled: false) == .finish)
        #expect(machine.driverSleeps(old, "old") == "old")
        #expect(machine.driverCancelled(old) == nil)
        #expect(deliver(9, to: &machine, by: old) == [])
        machine.ended(nil, by: old) { Issue.record("woke \($0)") }
        #expect(machine.request(next, isCancelled: false).text == "sleep")
    }

    @Test("a share for ever stays subscribed without subscribers, and is not read")
    func forever() throws {
        var (machine, key, connection) = try running(replaying: 2, while: .forever)
        for number in 1...3 { _ = deliver(number, to: &machine, by: connection) }
        #expect(!machine.leave(key).stops)
        machine.driverArrived(connection)
        #expect(machine.pull(connection, isCancelled: false) == .sleep)
        let (next, connects) = machine.subscribe()
        #expect(!connects)
        machine.arrive(next)
        #expect(machine.request(next, isCancelled: false).text == "deliver 2")
        #expect(machine.stop().stops)
        #expect(!machine.stop().stops)
    }

    @Test("a cancelled next() ends its subscription")
    func cancelled() throws {
        var (machine, key, _) = try running()
        #expect(machine.cancel(key) == "first")
        #expect(machine.request(key, isCancelled: true).text == "end, stop")
        #expect(machine.subscriberCount == 0)
    }
}

@Suite("The last elements of a sequence")
struct RecentElementsTests {
    @Test("at most the limit of elements is kept, each under its number")
    func limit() {
        var recent = RecentElements<Int>(limit: 3)
        #expect(recent.element(from: 0) == nil)
        var gone: [Int] = []
        for number in 0..<8 {
            if let element = recent.append(number) { gone.append(element) }
        }
        #expect(gone == [0, 1, 2, 3, 4])
        #expect(recent.first == 5)
        #expect(recent.end == 8)
        #expect((0...7).map { recent.element(from: $0)?.0 } == [5, 5, 5, 5, 5, 5, 6, 7])
        #expect(recent.element(from: 8) == nil)
        #expect(recent.removeAll().sorted() == [5, 6, 7])
        #expect(recent.first == 0)
    }
}

extension ShareStateMachine.RequestAction where Element == Int, Waiter == String {
    fileprivate var connection: ShareStateMachine.Connection? {
        if case .start(let connection) = self { connection } else { nil }
    }

    fileprivate var text: String {
        switch self {
        case .start: "start"
        case .deliver(let element, let wake): "deliver \(element)" + (wake.map { ", wake \($0)" } ?? "")
        case .end(let failure, let action): (failure == nil ? "end" : "fail") + (action.stops ? ", stop" : "")
        case .sleep(let wake): "sleep" + (wake.map { ", wake \($0)" } ?? "")
        }
    }
}
