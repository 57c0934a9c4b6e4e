import FreshetSignals
import Testing

@Suite("Cancelled at any suspension point an operator leaves nothing behind")
struct CancellationTests {
    @Test("publishAndRepeat")
    func publish() {
        cancellationSweep(
            of: { stage in
                publishAndRepeat(onOutputFrom: stage.signal("reload")) { stage.numbers(on: "numbers", count: 2) }
            },
            events: [
                { $0.source("numbers").fire() }, { $0.source("reload").fire() }, { $0.source("numbers").fire() },
                { $0.source("numbers").fire() }, { $0.source("reload").finish() }, { $0.source("numbers").fire() },
            ])
    }

    @Test("the sweep itself sees what is left behind")
    func sweep() {
        let stages = Lock<[SweepStage]>([])
        withKnownIssue {
            cancellationSweep(
                of: { stage in
                    stages.withLock { $0.append(stage) }
                    // Not cancelled with whoever asks.
                    return Steps { await Task { for await _ in stage.signal("s") {} }.value }
                }, events: [{ $0.source("s").fire() }])
        }
        for stage in stages.withLock({ $0 }) { stage.source("s").finish() }
    }
}
