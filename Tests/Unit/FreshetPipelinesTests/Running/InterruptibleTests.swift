import FreshetPipelines
import FreshetSignals
import TestSupport
import Testing

@Suite("An interruptible body", .hangLimit)
struct InterruptibleTests {
    /// Returns whether its task is cancelled, once it is.
    private static func untilCancelled() async -> Bool {
        let never = OneTimeEvent()
        _ = await never.wait()
        return Task.isCancelled
    }

    @Test("returns its result, and a later interruption has no effect")
    func returns() async {
        let interruption = OneTimeEvent()
        #expect(await interruptible(by: interruption, otherwise: 0) { 1 } == 1)
        interruption.happen()
        #expect(!interruption.hasHappened)
    }

    @Test("is cancelled by the interruption, and its end is awaited", arguments: [true, false])
    func interrupted(before: Bool) async {
        for _ in 0..<100 {
            let interruption = OneTimeEvent()
            if before { interruption.happen() }
            async let result = interruptible(by: interruption, otherwise: false) { await Self.untilCancelled() }
            if !before { interruption.happen() }
            #expect(await result)
        }
    }

    @Test("is cancelled with its task")
    func cancelled() async {
        for yields in 0..<100 {
            let task = Task {
                await interruptible(by: OneTimeEvent(), otherwise: false) { await Self.untilCancelled() }
            }
            for _ in 0..<yields % 5 { await Task.yield() }
            task.cancel()
            #expect(await task.value)
        }
    }
}
