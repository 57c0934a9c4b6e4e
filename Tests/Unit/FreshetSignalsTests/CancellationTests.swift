import FreshetSignals
import Testing

@Suite("An operator that is cancelled at any suspension point leaves nothing behind")
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

    @Test("merge")
    func merged() {
        let jobs = cancellationSweep(
            of: { merge([Emitter($0.numbers(on: "a", count: 2)), Emitter($0.numbers(on: "b", count: 1))]) },
            events: [
                { $0.source("a").fire() }, { $0.source("b").fire() }, { $0.source("a").fire() },
                { $0.source("b").fire() }, { $0.source("a").fire() },
            ])
        #expect(jobs > 15)
    }

    @Test("merge of a failing sequence")
    func mergedFailure() {
        cancellationSweep(
            of: {
                merge([Emitter($0.numbers(on: "a", count: 5)), Emitter($0.numbers(on: "b", count: 1, fails: true))])
            },
            events: [{ $0.source("a").fire() }, { $0.source("b").fire() }, { $0.source("b").fire() }])
    }

    @Test("a merge of more than one group has children")
    func mergedMany() {
        cancellationSweep(
            of: { stage in merge((0..<260).map { _ in stage.numbers(on: "a", count: 1) }) },
            events: [{ $0.source("a").fire() }, { $0.source("a").fire() }], maxJobs: 10_000, stride: 97)
    }

    @Test("combineLatest of two and of three")
    func combined() {
        cancellationSweep(
            of: { combineLatest($0.signal("a"), $0.probe($0.value(1))) },
            events: [
                { $0.source("a").fire() }, { $0.value(at: 0).value = 2 }, { $0.value(at: 0).finish() },
                { $0.source("a").finish() },
            ])
        cancellationSweep(
            of: { combineLatest($0.signal("a"), $0.probe($0.value(1)), $0.signal("b")) },
            events: [
                { $0.source("a").fire() }, { $0.value(at: 0).value = 2 }, { $0.source("b").fire() },
                { $0.value(at: 0).value = 3 }, { $0.value(at: 0).finish() }, { $0.source("a").fire() },
                { $0.source("a").finish() }, { $0.source("b").finish() },
            ])
    }

    @Test("accumulateLatestMany, to the end, to a failure, and when a branch ends without an element")
    func accumulated() {
        let branches: @Sendable (SweepStage, Int, Bool) -> [Emitter<Int, any Error>] = { stage, count, fails in
            [
                Emitter(stage.numbers(on: "a", count: 3)), Emitter(stage.probe(Emitter<Int, any Error>.once { 1 })),
                Emitter(stage.numbers(on: "b", count: count, fails: fails)),
            ]
        }
        let events: [@Sendable (SweepStage) -> Void] = [
            { $0.source("a").fire() }, { $0.source("a").fire() }, { $0.source("b").fire() },
            { $0.source("a").fire() }, { $0.source("b").fire() }, { $0.source("a").fire() },
        ]
        #expect(cancellationSweep(of: { accumulateLatestMany(branches($0, 1, false)) }, events: events) > 20)
        cancellationSweep(of: { accumulateLatestMany(branches($0, 1, true)) }, events: events)
        cancellationSweep(of: { accumulateLatestMany(branches($0, 0, false)) }, events: events)
    }

    @Test("withLatestFrom, to either side's end and failure")
    func withLatestFrom() {
        let events: [@Sendable (SweepStage) -> Void] = [
            { $0.source("a").fire() }, { $0.source("b").fire() }, { $0.source("a").fire() },
            { $0.source("b").fire() }, { $0.source("a").fire() }, { $0.source("b").fire() },
        ]
        for (a, b) in [(2, 9), (9, 1), (9, 0)] {
            for fails in [false, true] {
                cancellationSweep(
                    of: { stage in
                        stage.numbers(on: "a", count: a, fails: fails)
                            .withLatestFrom(stage.numbers(on: "b", count: b, fails: fails))
                    }, events: events + [{ $0.source("a").finish() }])
            }
        }
    }

    @Test("switchToLatest, to the end and to a failure of either side")
    func switched() {
        let events: [@Sendable (SweepStage) -> Void] = [
            { $0.source("outer").fire() }, { $0.source("inner").fire() }, { $0.source("outer").fire() },
            { $0.source("inner").fire() }, { $0.source("inner").fire() }, { $0.source("outer").fire() },
            { $0.source("inner").fire() }, { $0.source("inner").fire() },
        ]
        for (outer, inner) in [(false, false), (true, false), (false, true)] {
            cancellationSweep(
                of: { stage in
                    stage.numbers(on: "outer", count: 2, fails: outer)
                        .map { _ in stage.numbers(on: "inner", count: 1, fails: inner) }
                        .switchToLatest()
                }, events: events)
        }
    }

    @Test("share with one subscriber, connected and for ever", arguments: [ShareLifetime.connected, .forever])
    func shared(_ lifetime: ShareLifetime) {
        cancellationSweep(
            of: { $0.numbers(on: "a", count: 2).share(replaying: 1, while: lifetime) },
            events: [{ $0.source("a").fire() }, { $0.source("a").fire() }, { $0.source("a").fire() }])
    }

    @Test("share with subscribers that come and go", arguments: [ShareLifetime.connected, .forever])
    func sharedByMany(_ lifetime: ShareLifetime) {
        cancellationSweep(
            of: { stage in
                let shared = stage.numbers(on: "a", count: 4).share(replaying: 1, while: lifetime)
                return merge([
                    Emitter(publishAndRepeat(onOutputFrom: stage.signal("b")) { shared }),
                    Emitter(publishAndRepeat(onOutputFrom: stage.signal("c")) { shared }),
                ])
            },
            events: [
                { $0.source("a").fire() }, { $0.source("b").fire() }, { $0.source("a").fire() },
                {
                    $0.source("b").fire()
                    $0.source("c").fire()
                }, { $0.source("a").fire() }, { $0.source("b").finish() }, { $0.source("a").fire() },
                { $0.source("c").finish() }, { $0.source("a").fire() },
            ])
    }

    @Test("the sweep itself detects leaks")
    func sweep() {
        let kept = Lock<[Token]>([])
        withKnownIssue {
            cancellationSweep(
                of: { stage in
                    let token = Token(stage.held)
                    kept.withLock { $0.append(token) }
                    return Emitter.once { 1 }
                }, events: [])
        }
    }
}
