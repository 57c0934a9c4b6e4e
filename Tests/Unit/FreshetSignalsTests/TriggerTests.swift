import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("Triggers")
struct TriggerTests {
    /// A type whose values all have the same hash.
    struct Colliding: Hashable {
        let name: String
        func hash(into hasher: inout Hasher) { hasher.combine(0) }
    }

    class Base: Hashable, @unchecked Sendable {  // has no state
        static func == (left: Base, right: Base) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }
    final class Derived: Base, @unchecked Sendable {}

    @Test("an identifier activates its own signal and no other")
    func identifiers() {
        let trigger = Trigger()
        func reaches(_ received: some Hashable & Sendable, _ activated: some Hashable & Sendable) -> Bool {
            let subscription = trigger.signal(activatedBy: received).makeAsyncIterator()
            return withExtendedLifetime(subscription) { trigger.activate(for: activated) == 1 }
        }
        #expect(reaches(1, 1))
        #expect(!reaches(1, 2))
        #expect(!reaches(1, UInt8(1)), "another type")
        #expect(!reaches(1, 1.0))
        #expect(!reaches(Int?.some(1), 1))
        #expect(reaches(Int?.some(1), Int?.some(1)))
        #expect(reaches(Int?.none, Int?.none))
        #expect(!reaches(Int?.none, Int?.some(1)))
        #expect(!reaches(Colliding(name: "a"), Colliding(name: "b")), "equal hashes")
        #expect(reaches(Colliding(name: "a"), Colliding(name: "a")))
        #expect(reaches(Base(), Base()))
        #expect(!reaches(Derived(), Base()), "the dynamic type counts")
        let derived: Base = Derived()
        #expect(reaches(derived, Derived()), "the dynamic type counts, not the static one")
        let erased: any Hashable & Sendable = "a"
        let reachesErased = reaches(erased, "a")
        #expect(reachesErased)
    }

    @Test("an identifier that is not equal to itself never fires and needs no memory")
    func notReflexive() {
        let trigger = Trigger()
        let subscription = trigger.signal(activatedBy: Double.nan).makeAsyncIterator()
        #expect(trigger.activate(for: Double.nan) == 0)
        #expect(trigger.identifierCount == 0)
        withExtendedLifetime(subscription) {}
    }

    @Test("an identifier without a live signal needs no memory")
    func weak() {
        let trigger = Trigger()
        #expect(trigger.activate(for: "nobody") == 0)
        #expect(trigger.identifierCount == 0)
        for number in 0..<10_000 {
            _ = trigger.signal(activatedBy: number)
        }
        #expect(trigger.identifierCount == 0)
        var subscription: Signal.AsyncIterator? = trigger.signal(activatedBy: 1).makeAsyncIterator()
        #expect(trigger.identifierCount == 1, "the subscription holds it")
        #expect(trigger.activate(for: 1) == 1)
        subscription = nil
        #expect(trigger.identifierCount == 0)
        withExtendedLifetime(subscription) {}
    }

    @Test("two signals of one identifier are one source, listed twice in a merge")
    func oneSource() throws {
        let trigger = Trigger("operator")
        let causes = try SerialTestExecutor().run {
            let merged = Signal.merge(trigger.signal(activatedBy: 1), trigger.signal(activatedBy: 1))
            var iterator = merged.causes.makeAsyncIterator()
            #expect(trigger.activate(for: 1) == 1)
            return await iterator.next(isolation: #isolation)
        }
        #expect(causes?.map(\.count) == [1])
        #expect(causes?.first?.first.signal == "operator")
    }

    @Test("pending firings are not lost when the trigger is released; then its signal does not fire any more")
    func triggerGoes() throws {
        let executor = SerialTestExecutor()
        var trigger: Trigger? = Trigger()
        let box = Handed(try #require(trigger).signal(activatedBy: 1).makeAsyncIterator())
        trigger?.activate(for: 1)
        trigger = nil
        let received = Log()
        let task = Task(executorPreference: executor) {
            guard var iterator = box.take() else { return }
            while await iterator.next() != nil { received.add("firing") }
        }
        try executor.runUntilIdle()
        #expect(received.entries == ["firing"])
        task.cancel()
        try executor.runUntilIdle()
    }
}
