import FreshetControl
import Testing

@testable import FreshetCommands

@Suite struct MarbleTests {
    private let second = Scenario.second

    private func diagram(
        _ events: [ControlEvent], status: PipelineStatus? = nil, since: Int64 = 0, most: Int = 9
    ) -> MarbleDiagram {
        MarbleDiagram(
            Scenario.description("a"), RecentHistory(events: events, since: since, until: 3_600 * second),
            status: status, most: most)
    }

    private func run(
        _ number: Int64, at: Int64, took: Int64 = 100_000, _ outcome: RunOutcome, _ causes: [CauseStatus]
    ) -> ControlEvent {
        .runEnded(
            RunStatus(number: number, started: at, causes: causes, durationUSec: took, outcome: outcome), of: "a",
            at: at + took)
    }

    private func story(_ diagram: MarbleDiagram) -> [String] {
        let story = MarbleStory(diagram: diagram, times: Scenario.times)
        return diagram.episodes.flatMap { episode in
            episode.runs.indices.map { story.run($0, episode) } + story.withoutRun(episode)
        }
    }

    @Test("fourteen signals cause two runs: the first immediately, the others after the quiet period")
    func burst() {
        let begin = 100 * second
        var events: [ControlEvent] = (0..<14).map {
            .signal("network", number: Int64($0 + 1), at: begin + Int64($0) * 100_000)
        }
        let last = begin + 1_300_000
        events += [
            run(
                1, at: begin + 1_000, .unchanged, [CauseStatus(signal: "network", number: 1, first: begin, last: begin)]
            ),
            .state(.waiting, of: "a", waitingFor: .quiet, at: begin + 110_000),
            run(
                2, at: last + 2 * second, .unchanged,
                [CauseStatus(signal: "network", number: 14, count: 13, first: begin + 100_000, last: last)]),
        ]
        let diagram = diagram(events.sorted { $0.at < $1.at })
        #expect(diagram.episodes.count == 1)
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 14 signals, 2 runs")
        #expect(
            story(diagram) == [
                "run 1: for a; immediately; unchanged in 100 ms",
                "run 2: for b to n, 13 signals as one; waited 3.1 s for the quiet period; unchanged in 100 ms",
            ])
    }

    @Test("a retry has the signals of the failed run, which are shown once")
    func attempts() {
        let begin = 100 * second
        // Instants of causes are converted from another clock each time, and differ slightly.
        func start(_ skew: Int64) -> CauseStatus {
            CauseStatus(signal: "start", number: 1, first: begin + skew, last: begin)
        }
        let network = CauseStatus(signal: "network", number: 1, first: begin + 3 * second, last: begin + 3 * second)
        let diagram = diagram([
            .signal("start", number: 1, at: begin), run(1, at: begin + 1_000, .failed, [start(-1)]),
            run(2, at: begin + 2 * second, .failed, [start(1)]),
            .signal("network", number: 1, at: begin + 3 * second),
            run(3, at: begin + 4 * second, .changed, [start(0), network]),
            run(
                4, at: begin + 5 * second, .unchanged,
                [CauseStatus(signal: "operator", first: begin + 5 * second, last: begin + 5 * second)]),
        ])
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 3 signals, 4 runs")
        #expect(
            story(diagram).map { $0.prefix { $0 != ";" } } == [
                "run 1: for a", "run 2: repeats run 1, which did not succeed",
                "run 3: for b", "run 4: for c",
            ])
        for episode in diagram.episodes {
            let frames = MarbleFrames.fitting(episode, most: 60) { $0.lines(episode).first?.count ?? 0 }
            #expect(frames.lines(episode).allSatisfy { !$0.contains("?") }, "\(frames.lines(episode))")
        }
    }

    @Test("a retry has no new signals, also if the causes of the failed run are partly unknown")
    func attemptsOfWhatIsUnknown() {
        let begin = 100 * second
        let file = CauseStatus(signal: "network", number: 2, count: 2, first: begin - 2 * second, last: begin)
        let diagram = diagram([
            .signal("network", number: 2, at: begin), run(7, at: begin + 3 * second, .failed, [file]),
            run(8, at: begin + 5 * second, .unchanged, [file]),
        ])
        #expect(
            story(diagram).map { $0.prefix { $0 != ";" } } == [
                "run 7: for a", "run 8: repeats run 7, which did not succeed",
            ])
    }

    @Test("a signal without a run has a reason: fresh, answered, pending or unknown")
    func fates() {
        let begin = 100 * second
        let cause = CauseStatus(signal: "start", number: 1, first: begin, last: begin)
        let success = run(1, at: begin, took: second, .unchanged, [cause])
        let start = ControlEvent.signal("start", number: 1, at: begin)
        func outcome(_ event: ControlEvent, status: PipelineStatus? = nil) -> MarbleDiagram.SignalOutcome? {
            let all = [start, success, event].sorted { $0.at < $1.at }
            return diagram(all, status: status).episodes.flatMap(\.marbles).first { $0.source == event.signal }?.outcome
        }
        #expect(outcome(.signal("network", number: 1, at: begin + 30 * second)) == .fresh(run: 1, after: 29 * second))
        #expect(outcome(.signal("network", number: 1, at: begin + 500_000)) == .answered(run: 1))
        #expect(outcome(.signal("network", number: 1, at: begin + 90 * second)) == .unknown)
        // A fresh copy does not answer a request.
        #expect(outcome(.signal("reload", number: 1, at: begin + 30 * second)) == .unknown)
        let waiting = Scenario.status("a", .waiting)
        #expect(outcome(.signal("reload", number: 1, at: begin + 30 * second), status: waiting) == .pending)
    }

    private func parameter(_ first: Int64, _ last: Int64? = nil, count: Int64 = 1) -> CauseStatus {
        CauseStatus(signal: "parameter", count: count, first: first, last: last ?? first, detail: "query")
    }

    private func started(_ number: Int64, at: Int64, _ causes: [CauseStatus]) -> ControlEvent {
        .runStarted(RunStatus(number: number, started: at, causes: causes), of: "a", at: at + 200)
    }

    @Test("a parameter is one marble at the time when it was set, assigned to its run")
    func quietParameters() {
        var events: [ControlEvent] = []
        for turn in 0..<4 {
            let set = (100 + Int64(turn) * 2) * second
            // Published after a quiet period of 300 ms, just before the run begins.
            let at = set + 300_200
            events += [
                .state(.waiting, of: "a", waitingFor: .quiet, at: set + 100),
                .signal("parameter", number: Int64(turn + 1), detail: "query", pipeline: "a", at: at),
                started(Int64(turn + 1), at: at - 100, [parameter(set)]),
                run(Int64(turn + 1), at: at - 100, .changed, [parameter(set)]),
            ]
        }
        let diagram = diagram(events)
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 4 signals, 4 runs")
        let expected = zip(1...4, ["a", "b", "c", "d"]).map { number, label in
            "run \(number): for \(label); waited 300 ms for the quiet period; changed in 100 ms"
        }
        #expect(story(diagram) == expected)
        #expect(diagram.episodes.first?.marbles.map(\.at) == [100, 102, 104, 106].map { $0 * second })
    }

    @Test("values that were set within one quiet period are one marble with a count")
    func severalParameters() {
        let set = 100 * second
        let cause = parameter(set, set + 200_000, count: 3)
        let at = set + 500_000
        let diagram = diagram([
            .signal("parameter", number: 3, detail: "query", pipeline: "a", at: at), started(1, at: at, [cause]),
            run(1, at: at, .changed, [cause]),
        ])
        let marble = diagram.episodes.first?.marbles.first
        #expect(diagram.episodes.first?.marbles.count == 1)
        #expect(marble?.count == 3 && marble?.at == set && marble?.until == set + 200_000)
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 3 signals, 1 run")
    }

    @Test("parameters that waited for the network all belong to one run")
    func parametersThatWait() {
        let set = 100 * second
        let cause = parameter(set, set + 60 * second, count: 2)
        let run = run(1, at: set + 300 * second, .changed, [cause])
        let diagram = diagram([
            .signal("parameter", number: 1, detail: "query", pipeline: "a", at: set + 300_000),
            .signal("parameter", number: 2, detail: "query", pipeline: "a", at: set + 60_300_000),
            started(1, at: set + 300 * second, [cause]), run,
        ])
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 2 signals, 1 run")
        #expect(diagram.episodes.flatMap(\.marbles).allSatisfy { $0.outcome == .run(0) })
        #expect(diagram.episodes.first?.marbles.map(\.at) == [set, set + 60 * second])
    }

    @Test("a timer that was due during a sleep fires after it, and is one marble")
    func overdueTimer() {
        let awake = 1_000 * second
        let cause = CauseStatus(signal: "timer", first: awake - 900 * second, last: awake - 900 * second)
        let diagram = diagram([
            .signal("timer", number: 1, detail: "every 15min", pipeline: "a", at: awake),
            started(1, at: awake, [cause]), run(1, at: awake, .unchanged, [cause]),
        ])
        #expect(diagram.episodes.flatMap(\.marbles).map(\.outcome) == [.run(0)])
        #expect(diagram.episodes.first?.marbles.first?.at == awake)
    }

    @Test("a signal is identified by its number, also if the clock was set back before its run")
    func steppedClock() {
        let begin = 1_000 * second
        let cause = CauseStatus(
            signal: "network", number: 7, first: begin - 20 * second, last: begin - 20 * second)
        let diagram = diagram([
            .signal("network", number: 6, at: begin - 60 * second), .signal("network", number: 7, at: begin),
            started(1, at: begin + 100, [cause]), run(1, at: begin + 100, .unchanged, [cause]),
        ])
        #expect(MarbleStory(diagram: diagram, times: Scenario.times).headline == "a: 2 signals, 1 run")
        #expect(diagram.episodes.last?.marbles.last?.outcome == .run(0))
    }

    @Test("numbers start again with each daemon: the same number of an earlier daemon is another signal")
    func numbersOfTwoDaemons() {
        let begin = 1_000 * second
        let cause = CauseStatus(signal: "reload", number: 3, count: 2, first: begin - second, last: begin)
        let diagram = diagram([
            .signal("reload", number: 3, at: begin - 480 * second), .signal("reload", number: 2, at: begin - second),
            .signal("reload", number: 3, at: begin), started(1, at: begin + 100, [cause]),
            run(1, at: begin + 100, .unchanged, [cause]),
        ])
        let marbles = diagram.episodes.flatMap(\.marbles).sorted { $0.at < $1.at }
        #expect(marbles.map { $0.outcome == .run(0) } == [false, true, true])
    }

    @Test("a parameter without a run is not a cause of a later run")
    func parameterWithoutRun() {
        let set = 100 * second
        let cause = parameter(set, set + 200_000, count: 3)
        let diagram = diagram([
            .signal("parameter", number: 1, detail: "query", pipeline: "a", at: set - 5 * second),
            .signal("parameter", number: 4, detail: "query", pipeline: "a", at: set + 500_000),
            started(1, at: set + 500_000, [cause]), run(1, at: set + 500_000, .changed, [cause]),
        ])
        let marbles = diagram.episodes.flatMap(\.marbles).sorted { $0.at < $1.at }
        #expect(marbles.map(\.at) == [set - 5 * second, set])
        #expect(marbles.map { $0.outcome == .run(0) } == [false, true] && marbles.last?.count == 3)
    }

    @Test("a parameter that is set while a run with other values is in progress is a marble when it was set")
    func parameterDuringRun() {
        let set = 100 * second
        let again = parameter(set, set + second, count: 2)
        let diagram = diagram([
            .signal("parameter", number: 1, detail: "query", pipeline: "a", at: set + 300_000),
            started(1, at: set + 300_000, [parameter(set)]),
            run(1, at: set + 300_000, .failed, [parameter(set)]),
            .signal("parameter", number: 2, detail: "query", pipeline: "a", at: set + second + 300_000),
            started(2, at: set + second + 300_000, [again]), run(2, at: set + second + 300_000, .changed, [again]),
        ])
        let marbles = diagram.episodes.flatMap(\.marbles).sorted { $0.at < $1.at }
        #expect(marbles.map(\.at) == [set, set + second])
    }

    @Test("a signal after the start of a run is not its cause")
    func afterwards() {
        let begin = 100 * second
        let cause = CauseStatus(signal: "operator", first: begin, last: begin)
        let diagram = diagram([
            started(1, at: begin, [cause]),
            .signal("operator", number: 2, detail: "refresh", pipeline: "a", at: begin + 1_000),
            run(1, at: begin, .failed, [cause]),
        ])
        #expect(diagram.episodes.flatMap(\.marbles).map(\.outcome).filter { $0 == .run(0) }.count == 1)
        #expect(diagram.episodes.flatMap(\.marbles).count == 2)
    }

    @Test("signals of a held pipeline wait for its release; a refresh is refused")
    func held() {
        let begin = 100 * second
        let held = Scenario.status("a", .held)
        let events: [ControlEvent] = [
            .state(.held, of: "a", at: begin - second), .signal("start", number: 1, at: begin),
            .signal("operator", number: 1, detail: "refresh", pipeline: "a", at: begin + second),
        ]
        #expect(
            story(diagram(events, status: held)) == [
                "a: waiting, because a is held; 'freshetctl release a' lets it run", "b: refused, because a was held",
            ])
        // After the release, it runs for the signals; the refusal stays.
        let cause = CauseStatus(signal: "start", number: 1, first: begin, last: begin)
        let released: [ControlEvent] = [
            .state(.idle, of: "a", at: begin + 2 * second), started(1, at: begin + 2 * second, [cause]),
            run(1, at: begin + 2 * second, .changed, [cause]),
        ]
        #expect(
            story(diagram(events + released, status: Scenario.status("a", .loaded))) == [
                "run 1: for a; waited 2.0 s while it was held; changed in 100 ms", "b: refused, because a was held",
            ])
    }

    @Test("a signal before the start of the last run is not pending")
    func past() {
        let begin = 100 * second
        let cause = CauseStatus(signal: "operator", number: 1, first: begin, last: begin)
        let events: [ControlEvent] = [
            .signal("reload", number: 1, at: begin - 60 * second), run(1, at: begin, .failed, [cause]),
        ]
        let fates = diagram(events, status: Scenario.status("a", .waiting)).episodes.flatMap(\.marbles).map(\.outcome)
        #expect(fates.first == .unknown)
    }

    @Test("signals of other pipelines, and signals without a subscription, are not shown")
    func others() {
        let diagram = diagram([
            .signal("foreground", number: 1, at: second), .signal("timer", number: 1, pipeline: "b", at: second),
            .signal("operator", number: 1, pipeline: "a", at: 2 * second),
        ])
        #expect(diagram.episodes.flatMap(\.marbles).map(\.source) == ["operator"])
    }

    @Test("a cause without a known event is a marble")
    func unknownCause() {
        let cause = CauseStatus(signal: "parameter", count: 3, first: second, last: 2 * second, detail: "language")
        let episode = diagram([run(4, at: 3 * second, .changed, [cause])]).episodes.first
        #expect(episode?.received == 3 && episode?.marbles.first?.detail == "language")
        #expect(episode?.marbles.first?.outcome == .run(0))
    }

    @Test("a signal without a run is an instant, in a frame of a millisecond")
    func instant() {
        let diagram = diagram([.signal("network", number: 1, at: 100 * second)])
        let frames = diagram.episodes.first.map { episode in
            MarbleFrames.fitting(episode, most: 60) { $0.lines(episode).first?.count ?? 0 }
        }
        #expect(frames?.length == 1_000 && frames?.lanes.first?.events.joined().count == 1)
    }

    @Test("distant events are separate episodes, and the last episodes are kept")
    func episodes() {
        let events: [ControlEvent] = (1...5).map { .signal("network", number: Int64($0), at: Int64($0) * 100 * second) }
        let all = diagram(events)
        #expect(all.episodes.count == 5)
        #expect(diagram(events, most: 2).episodes == Array(all.episodes.suffix(2)))
    }

    @Test("with more signals than letters, those of one source and run are one marble, and none is lost")
    func many() {
        let begin = 100 * second
        let events: [ControlEvent] = (0..<300).map {
            .signal($0 % 3 == 0 ? "resume" : "network", number: Int64($0 + 1), at: begin + Int64($0) * 1_000)
        }
        let episode = diagram(events).episodes.first
        #expect(episode?.received == 300 && episode?.marbles.map(\.label) == ["a", "b"])
        #expect(episode?.marbles.map(\.count) == [100, 200])
    }
}
