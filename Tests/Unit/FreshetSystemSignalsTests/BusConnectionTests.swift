import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A real dbus-daemon. Each test waits for an event, never for a time; the time limit ends a test whose event does not
/// come.
@Suite("A bus connection", .hangLimit)
struct BusConnectionTests {
    static let interface = "org.example.Thing"
    static let path = "/org/example/thing"

    /// Records the states and messages of a subscription, as text, in order.
    final class Listener: Sendable {
        let subscription: BusSubscription
        private let entryStream: AsyncStream<String>
        let log: Recorder<String>

        /// - Parameter show: The text of a message.
        init(
            _ bus: BusConnection, _ match: BusMatch,
            show: @escaping @Sendable (BusMessage) -> String = { "\($0.member)\($0.arguments.map { "\($0)" } ?? "?")" }
        ) {
            let (entryStream, continuation) = AsyncStream.makeStream(of: String.self)
            let log = Recorder<String>()
            self.entryStream = entryStream
            self.log = log
            subscription = bus.subscribe(match) { subscriptionState in
                let text =
                    switch subscriptionState {
                    case .connecting: "connecting"
                    case .active(let sender): "in force \(sender ?? "-")"
                    case .refused: "refused"
                    case .disconnected: "disconnected"
                    }
                log.add(text)
                continuation.yield(text)
            } _: { message in
                let text = show(message)
                log.add(text)
                continuation.yield(text)
            }
        }

        /// Waits for an entry with this prefix; earlier entries are skipped.
        @discardableResult
        func awaitEntry(_ start: String) async throws -> String {
            for await text in entryStream where text.hasPrefix(start) { return text }
            throw CancellationError()
        }
    }

    static func match(sender: String? = nil, member: String? = nil, firstArgument: String? = nil) throws -> BusMatch {
        try BusMatch(sender: sender, interface: interface, member: member, firstArgument: firstArgument)
    }

    @Test("each subscriber receives the signals of its match and no others, in order")
    func signals() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let all = Listener(bus, try Self.match())
            let some = Listener(bus, try Self.match(member: "Two"))
            try await all.awaitEntry("in force")
            try await some.awaitEntry("in force")
            #expect(bus.availability == .connected)
            let peer = try await BusPeer.connected(to: bed.address)
            try await peer.emit("One", of: Self.interface, at: Self.path, [.uint32(1)])
            try await peer.emit("Two", of: Self.interface, at: Self.path, [.string("a"), .boolean(true)])
            try await peer.emit("Other", of: "org.example.Else", at: Self.path)
            try await peer.emit("Two", of: Self.interface, at: Self.path)
            try await some.awaitEntry("Two[]")
            try await all.awaitEntry("Two[]")
            #expect(some.log.values.suffix(2).map { String($0.prefix(5)) } == ["Two[F", "Two[]"])
            #expect(all.log.values.suffix(3).map { String($0.prefix(4)) } == ["One[", "Two[", "Two["])
            await peer.leave()
        }
    }

    @Test("matches by path, by path namespace and by first argument, with apostrophes and backslashes")
    func matches() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let hard = #"it's a 'test', \'really\'"#
            let exact = Listener(bus, try BusMatch(path: "/org/example"), show: { "m " + $0.path })
            let below = Listener(bus, try BusMatch(pathNamespace: "/org/example"), show: { "m " + $0.path })
            let argument = Listener(bus, try Self.match(firstArgument: hard), show: { _ in "m argument" })
            for listener in [exact, below, argument] { try await listener.awaitEntry("in force") }
            let peer = try await BusPeer.connected(to: bed.address)
            for path in ["/org", "/org/examples", "/org/example/one", "/org/example"] {
                try await peer.emit("A", of: Self.interface, at: path, [.string("it")])
            }
            try await peer.emit("A", of: Self.interface, at: "/org/example/two", [.uint32(1)])
            try await peer.emit("A", of: Self.interface, at: "/end", [.string(hard)])
            try await argument.awaitEntry("m argument")
            #expect(exact.log.values.filter { $0.hasPrefix("m") } == ["m /org/example"])
            #expect(
                below.log.values.filter { $0.hasPrefix("m") }
                    == ["m /org/example/one", "m /org/example", "m /org/example/two"])
            await peer.leave()
        }
    }

    @Test("a well-known sender is its current owner; signals of others are ignored")
    func owners() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let listener = Listener(bus, try Self.match(sender: "org.example.Service"))
            try await listener.awaitEntry("in force -")
            let one = try await BusPeer.connected(to: bed.address)
            let two = try await BusPeer.connected(to: bed.address)
            try await one.own("org.example.Service")
            try await listener.awaitEntry("in force \(one.uniqueName)")
            try await two.emit("Forged", of: Self.interface, at: Self.path)
            try await one.emit("Real", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("Real")
            try await one.disown("org.example.Service")
            try await listener.awaitEntry("in force -")
            try await two.own("org.example.Service")
            try await listener.awaitEntry("in force \(two.uniqueName)")
            try await one.emit("Former", of: Self.interface, at: Self.path)
            try await two.emit("Next", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("Next")
            #expect(!listener.log.values.contains { $0.hasPrefix("Forged") || $0.hasPrefix("Former") })
            await one.leave()
            await two.leave()
        }
    }

    @Test("a signal sent directly to this connection by a peer that does not own the name is ignored")
    func forged() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let listener = Listener(bus, try Self.match(sender: "org.example.Service"))
            let anybody = Listener(bus, try Self.match())
            let owner = try await BusPeer.connected(to: bed.address)
            let forger = try await BusPeer.connected(to: bed.address)
            try await owner.own("org.example.Service")
            try await listener.awaitEntry("in force :")
            try await anybody.awaitEntry("in force")
            let name = try #require(await bed.run { bus.uniqueName })
            try await forger.emit("Forged", of: Self.interface, at: Self.path, to: name)
            // The signal does arrive here: a match without a sender receives it.
            try await anybody.awaitEntry("Forged")
            // Only the bus may report a change of owner.
            try await forger.emit(
                "NameOwnerChanged", of: "org.freedesktop.DBus", at: "/org/freedesktop/DBus", to: name,
                [.string("org.example.Service"), .string(owner.uniqueName), .string(forger.uniqueName)])
            try await forger.emit("Forged", of: Self.interface, at: Self.path)
            try await anybody.awaitEntry("Forged")
            try await owner.emit("Real", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("Real")
            #expect(!listener.log.values.contains { $0.hasPrefix("Forged") })
            await owner.leave()
            await forger.leave()
        }
    }

    @Test("a connection can be followed by its unique name")
    func uniqueSender() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let one = try await BusPeer.connected(to: bed.address)
            let two = try await BusPeer.connected(to: bed.address)
            let listener = Listener(bus, try Self.match(sender: try await one.uniqueName))
            try await listener.awaitEntry("in force")
            try await two.emit("Two", of: Self.interface, at: Self.path)
            try await one.emit("One", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("One")
            #expect(!listener.log.values.contains { $0.hasPrefix("Two") })
            await one.leave()
            await two.leave()
        }
    }

    @Test("a restarted bus is connected again with its subscriptions, three times")
    func restarted() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let listener = Listener(bus, try Self.match(sender: "org.example.Service"))
            for _ in 0..<3 {
                let peer = try await BusPeer.connected(to: bed.address)
                try await peer.own("org.example.Service")
                try await listener.awaitEntry("in force :")
                try await peer.emit("Here", of: Self.interface, at: Self.path)
                try await listener.awaitEntry("Here")
                await bed.stop()
                try await listener.awaitEntry("disconnected")
                await peer.leave()
                try await bed.start()
            }
            try await listener.awaitEntry("in force")
        }
    }

    @Test("a missing bus is reported, and used when it appears, together with its directory")
    func absent() async throws {
        try await BusBed.with { bed in
            let bus = await bed.connection()
            let listener = Listener(bus, try Self.match())
            try await bus.reach { $0 != .connecting }
            guard case .unavailable(let reason) = bus.availability else {
                Issue.record("there is no bus, and it is \(bus.availability)")
                return
            }
            #expect(reason.contains("/run/bus") && reason.contains("when it appears"))
            try await bed.start()
            try await listener.awaitEntry("in force")
            #expect(bus.availability == .connected)
        }
    }

    @Test("a socket without a listening process is waited for, too")
    func stale() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let first = try await BusPeer.connected(to: bed.address)
            await bed.stop()
            await first.leave()
            #expect(access("\(bed.directory)/run/bus", F_OK) == 0)
            let bus = await bed.connection()
            try await bus.reach { $0 != .connecting }
            #expect(bus.availability != .connected)
            try await bed.start()
            try await bus.reach { $0 == .connected }
        }
    }

    @Test("an invalid address is reported with the reason, and calls fail immediately")
    func nowhere() async throws {
        try await withBusLoop { loop in
            for address in ["unix:abstract=freshet-there-is-no-such-bus", "nonsense", "unix:path=relative"] {
                let bus = BusConnection(loop, .session, address: address)
                let availability = try await bus.reach { $0 != .connecting }
                #expect(availability.description.contains("bus"))
                let answer = await bus.answer("A", of: "org.example.A", at: "/", on: "org.example.A")
                #expect(answer == .failure(.disconnected))
            }
        }
    }

    @Test("a bus that ends connections immediately is retried after a pause")
    func refusing() async throws {
        try await BusBed.with(limits: #"<limit name="max_completed_connections">1</limit>"#) { bed in
            try await bed.start()
            let peer = try await BusPeer.connected(to: bed.address)
            let bus = await bed.connection()
            try await bus.reach { if case .unavailable = $0 { true } else { false } }
            await peer.leave()
            try await bus.reach { $0 == .connected }
        }
    }

    @Test("a match that the bus refuses is reported as refused, and the others stay active")
    func refused() async throws {
        try await BusBed.with(limits: #"<limit name="max_match_rules_per_connection">2</limit>"#) { bed in
            try await bed.start()
            let bus = await bed.connection()
            try await bus.reach { $0 == .connected }
            let listeners = try ["One", "Two", "Three"].map { Listener(bus, try Self.match(member: $0)) }
            try await listeners[0].awaitEntry("in force")
            try await listeners[1].awaitEntry("in force")
            try await listeners[2].awaitEntry("refused")
            // A released match allows another one.
            listeners[0].subscription.cancel()
            let fourth = Listener(bus, try Self.match(member: "Four"))
            try await fourth.awaitEntry("in force")
        }
    }

    @Test(
        "a message of 1 MB, and one of 32 MB (the limit of a bus), is received; its body is read up to the limit only"
    )
    func large() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let listener = Listener(bus, try Self.match()) { message in
                "\(message.member) \(message.signature) \(message.arguments.map { "\($0.count)" } ?? "too much")"
            }
            try await listener.awaitEntry("in force")
            let peer = try await BusPeer.connected(to: bed.address)
            for size in [1_048_576, 33_554_432 - 1_024] {
                try await peer.emitBytes(size, "Large", of: Self.interface, at: Self.path)
                try await listener.awaitEntry("Large ay too much")
            }
            let longest = String(repeating: "x", count: BusValueReader.maximumText)
            try await peer.emit("Text", of: Self.interface, at: Self.path, [.string(longest)])
            try await listener.awaitEntry("Text s 1")
            try await peer.emit("Text", of: Self.interface, at: Self.path, [.string(longest + "x")])
            try await listener.awaitEntry("Text s too much")
            let numbers = BusValueReader.maximumValues - 1  // and the array itself
            try await peer.emitBytes(numbers, "Array", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("Array ay 1")
            try await peer.emitBytes(numbers + 1, "Array", of: Self.interface, at: Self.path)
            try await listener.awaitEntry("Array ay too much")
            await peer.leave()
        }
    }

    @Test("three thousand signals are all received, in order, and do not block the loop")
    func flood() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let count = 3_000
            let received = Mutex<[UInt32]>([])
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let (ready, begin) = AsyncStream.makeStream(of: Void.self)
            let turns = Atomic(0)
            let most = Atomic(0)
            let observation = bed.loop.observeWakeUps {
                turns.store(0, ordering: .relaxed)
                return false
            }
            let subscription = bus.subscribe(try Self.match()) { subscriptionState in
                if case .active = subscriptionState { begin.yield() }
            } _: { message in
                let now = turns.add(1, ordering: .relaxed).newValue
                most.max(now, ordering: .relaxed)
                guard case .uint32(let number)? = message.arguments?.first else { return }
                received.withLock { $0.append(number) }
                if number == UInt32(count - 1) { end.yield() }
            }
            for await _ in ready { break }
            let peer = try await BusPeer.connected(to: bed.address)
            for number in 0..<count {
                try await peer.emit("N", of: Self.interface, at: Self.path, [.uint32(UInt32(number))])
            }
            for await _ in over { break }
            // Compared to a truth value, because the list is too long to be printed.
            let allInOrder = received.withLock { $0 } == (0..<count).map { UInt32($0) }
            #expect(allInOrder)
            #expect(most.load(ordering: .relaxed) <= BusLink.messagesPerIteration)
            withExtendedLifetime((observation, subscription)) {}
            await peer.leave()
        }
    }

    @Test("a subscription that ends in its own handler receives nothing more; a released one has no effect on the bus")
    func ends() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let received = Mutex(0)
            let own = Mutex<BusSubscription?>(nil)
            own.withLock {
                $0 = try? bus.subscribe(Self.match()) { _ in
                    received.withLock { $0 += 1 }
                    let ended = own.withLock { held -> BusSubscription? in
                        defer { held = nil }
                        return held
                    }
                    withExtendedLifetime(ended) {}
                }
            }
            let marker = Listener(bus, try Self.match(member: "Last"))
            try await marker.awaitEntry("in force")
            let peer = try await BusPeer.connected(to: bed.address)
            for member in ["One", "Two", "Last"] { try await peer.emit(member, of: Self.interface, at: Self.path) }
            try await marker.awaitEntry("Last")
            #expect(received.withLock { $0 } == 1)
            await peer.leave()
        }
    }

    @Test("a method is called and its reply read; an error and a missing service are reported")
    func calls() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            try await bus.reach { $0 == .connected }
            let daemon = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
            let has = await bus.answer(
                "NameHasOwner", of: daemon.0, at: daemon.1, on: daemon.0, [.string("org.freedesktop.DBus")])
            #expect(has == .success([.boolean(true)]))
            let none = await bus.answer("A", of: "org.example.A", at: "/", on: "org.example.None")
            guard case .failure(let error) = none else {
                Issue.record("the reply is not an error: \(none)")
                return
            }
            #expect(error.name == "org.freedesktop.DBus.Error.NameHasNoOwner")
            #expect(await bus.answer("no name", of: daemon.0, at: daemon.1, on: daemon.0) == .failure(.invalid))
            #expect(
                await bus.answer("GetId", of: daemon.0, at: daemon.1, on: daemon.0, [.array([])]) == .failure(.invalid))
        }
    }

    @Test("values of all types arrive as they were sent; an empty array and values of different types are refused")
    func values() async throws {
        let basic: [BusValue] = [
            .byte(1), .boolean(true), .int16(-2), .uint16(3), .int32(-4), .uint32(5), .int64(-6), .uint64(7),
            .double(0.5),
            .string("ä"), .objectPath("/a"), .signature("a{sv}"),
        ]
        let sent: [BusValue] =
            basic.map(BusValue.variant) + [
                .structure(basic), .array([.array([.int32(1), .int32(2)]), .array([.int32(3)])]),
                .structure([
                    .string("unix-process"),
                    .array([
                        .entry(key: .string("pid"), value: .variant(.uint32(1))),
                        .entry(key: .string("more"), value: .variant(.structure([.variant(.array([.byte(7)]))]))),
                    ]),
                ]),
            ]
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let received = Mutex<[BusValue]?>(nil)
            let isActive = Mutex(false)
            let subscription = bus.subscribe(
                try Self.match(), onState: { if case .active = $0 { isActive.withLock { $0 = true } } }
            ) { message in received.withLock { $0 = message.arguments } }
            #expect(await eventually { isActive.withLock { $0 } })
            let peer = try await BusPeer.connected(to: bed.address)
            try await peer.emit("One", of: Self.interface, at: Self.path, sent)
            #expect(await eventually { received.withLock { $0 } != nil })
            #expect(received.withLock { $0 } == sent)
            subscription.cancel()
            await peer.leave()
            for invalid: BusValue in [
                .array([]), .structure([]), .array([.int32(1), .string("a")]), .structure([.array([])]),
                .variant(.entry(key: .string("a"), value: .string("b"))),
            ] {
                let answer = await bus.answer("A", of: "org.example.A", at: "/", on: "org.example.A", [invalid])
                #expect(answer == .failure(.invalid), "\(invalid): \(answer)")
            }
        }
    }

    @Test("a blocking connection calls methods, and reports errors, a missing service and a missing bus")
    func blocking() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            try await bed.connection().reach { $0 == .connected }
            let bus = try BlockingBus(address: bed.address)
            let (name, path) = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
            #expect(
                try bus.call("NameHasOwner", of: name, at: path, on: name, [.string(name)]) == [.boolean(true)])
            #expect(throws: BusError.invalid) {
                try bus.call("GetId", of: name, at: path, on: name, [.array([])])
            }
            let error = #expect(throws: BusError.self) {
                try bus.call("A", of: "org.example.A", at: "/", on: "org.example.None")
            }
            #expect(error?.name == "org.freedesktop.DBus.Error.ServiceUnknown")
            #expect(throws: BusError.self) {
                try BlockingBus(address: "unix:path=/none").call("GetId", of: name, at: path, on: name)
            }
            #expect(throws: BusError.startsProgram) {
                try BlockingBus(address: "unix:path=/none;unixexec:path=/bin/true")
            }
        }
    }

    @Test("calls above the limit are refused, and pending calls fail when the bus ends")
    func callLimit() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            try await bus.reach { $0 == .connected }
            let answers = Recorder<Result<[BusValue], BusError>>()
            let (all, next) = AsyncStream.makeStream(of: Void.self)
            // On the loop's thread no reply arrives in between.
            await bed.run {
                for _ in 0...BusLink.maximumCalls {
                    bus.call("GetId", of: "org.freedesktop.DBus", at: "/", on: "org.freedesktop.DBus") {
                        answers.add($0)
                        next.yield()
                    }
                }
            }
            var iterator = all.makeAsyncIterator()
            for _ in 0...BusLink.maximumCalls { _ = await iterator.next() }
            #expect(answers.values.first == .failure(.tooMany))
            #expect(answers.values.dropFirst().allSatisfy { if case .success = $0 { true } else { false } })
            // Pending calls get an error when the bus ends.
            let lost = Recorder<Result<[BusValue], BusError>>()
            await bed.run {
                for _ in 0..<3 {
                    bus.call("Get", of: "org.freedesktop.DBus.Properties", at: "/", on: "org.example.None") {
                        lost.add($0)
                    }
                }
            }
            await bed.stop()
            try await bus.reach { $0 != .connected }
            #expect(lost.values.count == 3)
        }
    }

    @Test("a released connection with subscriptions and pending calls leaves nothing behind")
    func released() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            var connections: [Weak] = []
            for _ in 0..<20 {
                let bus = await bed.connection()
                connections.append(Weak(bus))
                let listener = Listener(bus, try Self.match())
                try await listener.awaitEntry("in force")
                bus.call("GetId", of: "org.freedesktop.DBus", at: "/", on: "org.freedesktop.DBus") { _ in }
            }
            // The last connection is released in the loop's next iteration.
            await withCheckedContinuation { continuation in bed.loop.perform { continuation.resume() } }
            #expect(connections.count { $0.bus != nil } == 0)
        }
    }

    private struct Weak {
        weak var bus: BusConnection?
        init(_ bus: BusConnection) { self.bus = bus }
    }
}

/// Runs a body with a loop that runs in its own thread.
func withBusLoop(_ body: @Sendable (EventLoop) async throws -> Void) async throws {
    let loop = try EventLoop()
    try loop.runInThread(named: "bus-test")
    defer { loop.stop() }
    try await body(loop)
}
