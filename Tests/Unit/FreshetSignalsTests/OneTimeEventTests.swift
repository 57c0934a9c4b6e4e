import FreshetSignals
import TestSupport
import Testing

@Suite("A one-time event", .hangLimit)
struct OneTimeEventTests {
    @Test("is awaited once it has happened, and stays so")
    func happened() async {
        let event = OneTimeEvent()
        #expect(!event.hasHappened)
        event.happen()
        event.giveUp()
        #expect(event.hasHappened)
        #expect(await event.wait())
        #expect(await event.wait())
    }

    @Test("that is given up will not happen")
    func givenUp() async {
        let event = OneTimeEvent()
        event.giveUp()
        event.happen()
        #expect(!event.hasHappened)
        #expect(await event.wait() == false)
    }

    @Test("wakes the task that waits", arguments: [true, false])
    func wakes(happens: Bool) async {
        for _ in 0..<200 {
            let event = OneTimeEvent()
            async let result = event.wait()
            async let other: Void = happens ? event.happen() : event.giveUp()
            await other
            #expect(await result == happens)
        }
    }

    @Test("does not hold a task that is cancelled, before or during the wait")
    func cancelled() async {
        for yields in 0..<200 {
            let event = OneTimeEvent()
            let task = Task { await event.wait() }
            for _ in 0..<yields % 4 { await Task.yield() }
            task.cancel()
            #expect(await task.value == false)
            // The cancelled wait does not take the event.
            event.happen()
            #expect(await event.wait())
        }
    }

    @Test("ends the wait whatever comes first: the event, the cancellation or its end")
    func races() async {
        for _ in 0..<500 {
            let event = OneTimeEvent()
            let task = Task { await event.wait() }
            await withTaskGroup { group in
                group.addTask { event.happen() }
                group.addTask { task.cancel() }
                group.addTask { event.giveUp() }
            }
            let result = await task.value
            #expect(!result || event.hasHappened)
        }
    }
}
