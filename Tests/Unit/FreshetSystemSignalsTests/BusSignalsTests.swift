import FreshetSignals
import TestSupport
import Testing

@testable import FreshetSystemSignals

@Suite("Bus signals", .hangLimit)
struct BusSignalsTests {
    private static let match = BusMatch(
        valid: "org.example.Printer", path: "/org/example/Printer", interface: "org.example.Printer",
        member: "Done", firstArgument: "page")

    @Test("only the matching signal fires, once")
    func wanted() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let signals = BusSignals(await bed.connection())
            let followed = signals.follow(Self.match)
            let owner = try await BusPeer.connected(to: bed.address)
            let other = try await BusPeer.connected(to: bed.address)
            try await owner.own("org.example.Printer")
            let name = try await owner.uniqueName
            try await followed.reach { $0 == .active(sender: name) }
            var causes = followed.signal.causes.makeAsyncIterator()
            let (interface, path) = ("org.example.Printer", "/org/example/Printer")
            try await owner.emit("Started", of: interface, at: path, [.string("page")])
            try await owner.emit("Done", of: "org.example.Other", at: path, [.string("page")])
            try await owner.emit("Done", of: interface, at: "\(path)/tray", [.string("page")])
            try await owner.emit("Done", of: interface, at: path, [.string("book")])
            try await owner.emit("Done", of: interface, at: path, [.boolean(true)])
            try await other.emit("Done", of: interface, at: path, [.string("page")])
            try await owner.emit("Done", of: interface, at: path, [.string("page")])
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.first.number == 1 && cause?.count == 1)
            #expect(cause?.last.signal == "dbus")
            #expect(cause?.last.detail == "org.example.Printer.Done from \(name) at /org/example/Printer")
            // The name gets another owner.
            try await owner.disown("org.example.Printer")
            try await other.own("org.example.Printer")
            let newName = try await other.uniqueName
            try await followed.reach { $0 == .active(sender: newName) }
            try await owner.emit("Done", of: interface, at: path, [.string("page")])
            try await other.emit("Done", of: interface, at: path, [.string("page")])
            let second = await causes.next(isolation: nil)?.first
            #expect(second?.last.number == 2 && second?.last.detail?.contains(newName) == true)
            await owner.leave()
            await other.leave()
        }
    }

    @Test("a message with the wrong sender is counted and fires nothing")
    func strangers() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let bus = await bed.connection()
            let followed = BusSignals(bus).follow(Self.match)
            let owner = try await BusPeer.connected(to: bed.address)
            let stranger = try await BusPeer.connected(to: bed.address)
            try await owner.own("org.example.Printer")
            let ownerName = try await owner.uniqueName
            try await followed.reach { $0 == .active(sender: ownerName) }
            var causes = followed.signal.causes.makeAsyncIterator()
            let name = try #require(await bed.run { bus.uniqueName })
            let (interface, path) = ("org.example.Printer", "/org/example/Printer")
            for _ in 1...3 { try await stranger.emit("Done", of: interface, at: path, to: name, [.string("page")]) }
            try await stranger.emit("Other", of: interface, at: path, to: name, [.string("page")])
            // Through the bus, in order: when it has replied to this, it has delivered the earlier messages.
            try await stranger.own("org.example.Stranger")
            try await owner.emit("Done", of: interface, at: path, [.string("page")])
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            #expect(await bed.run { followed.ignoredMessages } == 3)
            followed.fire("by hand")
            #expect(await causes.next(isolation: nil)?.first?.last.detail == "by hand")
            await owner.leave()
            await stranger.leave()
        }
    }

    @Test("a match is followed once, while it is in use")
    func shared() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let signals = BusSignals(await bed.connection())
            do {
                let first = signals.follow(Self.match)
                let second = signals.follow(Self.match)
                #expect(first === second)
                let other = signals.follow(BusMatch(valid: nil, interface: "org.example.Printer"))
                #expect(other !== first && signals.count == 2)
                withExtendedLifetime((first, second, other)) {}
            }
            #expect(signals.count == 0)
        }
    }

    @Test("a restarted bus is subscribed to again; a large message, and a flood, are counted")
    func restarted() async throws {
        try await BusBed.with { bed in
            let signals = BusSignals(await bed.connection())
            let followed = signals.follow(BusMatch(valid: nil, interface: "org.example.Printer"))
            var causes = followed.signal.causes.makeAsyncIterator()
            for round in 1...2 as ClosedRange<UInt64> {
                try await bed.start()
                try await followed.reach { $0 == .active(sender: nil) }
                let peer = try await BusPeer.connected(to: bed.address)
                try await peer.emitBytes(1_048_576, "Done", of: "org.example.Printer", at: "/")
                for _ in 1..<1_000 { try await peer.emit("Done", of: "org.example.Printer", at: "/") }
                while let cause = await causes.next(isolation: nil)?.first, cause.last.number < round * 1_000 {}
                await peer.leave()
                await bed.stop()
                try await followed.reach { if case .disconnected = $0 { true } else { false } }
            }
        }
    }
}

extension BusSignal {
    /// Waits for a state; the suite's time limit is the deadline.
    fileprivate func reach(_ isWanted: @Sendable (BusSubscriptionState) -> Bool) async throws {
        for await subscriptionState in subscriptionStates where isWanted(subscriptionState) { return }
        throw CancellationError()
    }
}
