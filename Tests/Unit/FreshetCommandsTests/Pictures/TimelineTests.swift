import FreshetControl
import FreshetRender
import Testing

@testable import FreshetCommands

@Suite struct TimelineTests {
    private let minute = Scenario.minute

    private func timeline(
        _ events: [ControlEvent], _ descriptions: [PipelineDescription] = [Scenario.description("a")],
        isChosen: Bool = true
    ) -> Timeline {
        Timeline(RecentHistory(events: events, since: 0, until: 60 * minute), descriptions, isChosen: isChosen)
    }

    private func run(_ number: Int64, from: Int64, took: Int64? = nil, _ outcome: RunOutcome? = nil) -> RunStatus {
        RunStatus(number: number, started: from, durationUSec: took, outcome: outcome)
    }

    @Test("a run lasts from its start to its end, after its wait")
    func run() {
        let began = run(1, from: 5 * minute)
        let ended = run(1, from: 5 * minute, took: minute, .changed)
        let lane = timeline([
            .state(.waiting, of: "a", waitingFor: .network, at: 2 * minute),
            .runStarted(began, of: "a", at: 5 * minute),
            .runEnded(ended, of: "a", at: 6 * minute),
        ]).pipelines
        #expect(
            lane.first?.parts == [
                .init(from: 2 * minute, to: 5 * minute, kind: .waiting(.network)),
                .init(from: 5 * minute, to: 6 * minute, kind: .run(.changed), run: ended),
            ])
        #expect(lane.first?.runs == 1)
    }

    @Test("a run without an end is in progress, and a run with only an end event has its beginning from that event")
    func halves() {
        let open = run(2, from: 50 * minute)
        let ended = run(1, from: 5 * minute, took: minute, .failed)
        let lane = timeline([.runEnded(ended, of: "a", at: 6 * minute), .runStarted(open, of: "a", at: 50 * minute)])
            .pipelines
        #expect(
            lane.first?.parts == [
                .init(from: 5 * minute, to: 6 * minute, kind: .run(.failed), run: ended),
                .init(from: 50 * minute, to: 60 * minute, kind: .run(nil), run: open),
            ])
    }

    @Test("a hold lasts until the release")
    func held() {
        let lane = timeline([
            .state(.held, of: "a", at: 10 * minute), .state(.loaded, of: "a", at: 20 * minute),
        ]).pipelines
        #expect(lane.first?.parts == [.init(from: 10 * minute, to: 20 * minute, kind: .held)])
    }

    @Test("facts are bands: without a network until it is back, asleep for the measured time")
    func bands() {
        let bands = timeline([
            .fact("network", "not reachable: no carrier", at: 10 * minute),
            .fact("network", "not reachable: no route", at: 11 * minute),
            .fact("network", "reachable via 192.0.2.1", at: 15 * minute),
            .fact("network", source: "network 192.0.2.9", "not reachable: no route", at: 16 * minute),
            .fact("resume", "going to sleep", at: 20 * minute),
            .fact("resume", "awake, after 120.0 s of sleep", at: 23 * minute),
            .fact("network", "not reachable: no carrier", at: 50 * minute),
        ])
        #expect(
            bands.offline == [
                .init(from: 10 * minute, to: 15 * minute), .init(from: 50 * minute, to: 60 * minute),
            ])
        #expect(bands.asleep == [.init(from: 21 * minute, to: 23 * minute)])
    }

    @Test("a pipeline with its own target has the offline times of that target, others those of the machine")
    func targets() {
        let history = RecentHistory(
            events: [
                .fact("network", "not reachable: no route", at: 10 * minute),
                .fact("network", "reachable via 192.0.2.1", at: 15 * minute),
                .fact("network", source: "network 192.0.2.9", "not reachable: no route", at: 20 * minute),
                .fact("network", source: "network 192.0.2.9", "reachable via 192.0.2.1", at: 30 * minute),
            ], since: 0, until: 60 * minute)
        let timeline = Timeline(
            history,
            [
                Scenario.description("a", ["network"]), Scenario.description("b", ["network 192.0.2.9"]),
                Scenario.description("c", ["network", "network 192.0.2.9"]), Scenario.description("d", ["timer"]),
            ], isChosen: true)
        let own = [Timeline.TimeRange(from: 20 * minute, to: 30 * minute)]
        #expect(timeline.pipelines.map(\.offline) == [nil, own, nil, nil])
        #expect(timeline.offline == [.init(from: 10 * minute, to: 15 * minute)])
        let text = TimelineText(timeline: timeline, times: Scenario.times, palette: Palette(isColourful: false))
            .lines(columns: 77)
        // Sixty columns: one for each minute.
        func lane(_ name: String) -> String { text.first { $0.hasPrefix("\(name) ") } ?? "" }
        #expect(lane("a").contains("──░░░░░──") && lane("b").contains("──░░░░░░░░░░──"), "\(text)")
        let svg = TimelineSVG(timeline: timeline, times: Scenario.times).text
        #expect(svg.split(separator: "<title>offline, ").count == 1 + 4)
    }

    @Test("a pipeline that is not configured any more is left out and counted, unless it is asked for")
    func removed() {
        let ended = run(1, from: 5 * minute, took: minute, .changed)
        let history = RecentHistory(
            events: [
                .runEnded(ended, of: "gone", at: 6 * minute),
                .signal("timer", number: 1, pipeline: "gone", at: 5 * minute),
            ], since: 0, until: 60 * minute)
        let usual = Timeline(history, [Scenario.description("a")], isChosen: false)
        #expect(usual.pipelines.isEmpty && usual.sources.isEmpty && usual.removedPipelines == 1)
        #expect(usual.remarks.contains("1 removed pipeline not shown; --all shows them."))
        let all = Timeline(history, [Scenario.description("a")], isChosen: false, hasRemoved: true)
        #expect(all.pipelines.map(\.name) == ["gone"] && all.sources.map(\.name) == ["timer"])
    }

    @Test("without --since, the picture begins at a round time near the first known event")
    func beginning() {
        func begun(_ unseen: [Timeline.TimeRange], until: Int64 = 60 * Scenario.minute) -> RecentHistory {
            var history = RecentHistory(events: [], since: 0, until: until, unseen: unseen)
            history.beginWhereKnown { _ in 0 }
            return history
        }
        // The daemon is 66 seconds old.
        let young = begun([.init(from: 0, to: 58 * minute + 54_000_000)])
        #expect(young.since == 58 * minute + 50_000_000)
        #expect(young.unseen == [.init(from: young.since, to: 58 * minute + 54_000_000)])
        // The daemon began at a round time.
        let half = begun([.init(from: 0, to: 30 * minute)])
        #expect(half.since == 30 * minute && half.unseen.isEmpty)
        // A picture is longer than a second.
        let new = begun([.init(from: 0, to: 60 * minute - 1_000_000)])
        #expect(new.since == 60 * minute - 10_000_000)
        // An earlier daemon ran before it, or there are no known events.
        for unseen in [[Timeline.TimeRange(from: 20 * minute, to: 58 * minute)], [.init(from: 0, to: 60 * minute)], []]
        {
            let whole = begun(unseen)
            #expect(whole.since == 0 && whole.unseen == unseen)
        }
    }

    @Test("the first day is shown before the axis; the next day has a tick")
    func day() {
        // 2026-11-20 22:30 to 01:00.
        let since = Scenario.now - 14_963_000_000
        let timeline = Timeline(
            RecentHistory(events: [], since: since, until: since + 150 * minute), [], isChosen: false)
        let lines = TimelineText(timeline: timeline, times: Scenario.times, palette: Palette(isColourful: false))
            .lines(columns: 80)
        let parts = lines.first?.split(whereSeparator: { $0 == "│" }).map {
            $0.split(separator: " ").joined(separator: " ")
        }
        #expect(parts == ["2026-11-20", "23:00", "Nov 21", "01:00"])
    }

    @Test("the state before the window continues in the window")
    func before() {
        let timeline = Timeline(
            RecentHistory(
                events: [
                    .fact("network", "not reachable: no carrier", at: minute),
                    .state(.waiting, of: "a", waitingFor: .network, at: 2 * minute),
                ], since: 30 * minute, until: 60 * minute), [Scenario.description("a")], isChosen: true)
        #expect(timeline.offline == [.init(from: 30 * minute, to: 60 * minute)])
        #expect(timeline.pipelines.first?.parts.map(\.from) == [30 * minute])
    }

    @Test("with names, the picture has each named pipeline and its signals")
    func chosen() {
        let events: [ControlEvent] = [
            .signal("network", number: 1, at: minute), .signal("foreground", number: 1, at: minute),
            .signal("timer", number: 1, pipeline: "a", at: minute),
            .signal("network", number: 1, source: "network 192.0.2.9", at: minute),
        ]
        #expect(timeline(events).sources.map(\.name) == ["network", "timer"])
        #expect(timeline(events).pipelines.map(\.name) == ["a"])
        let all = timeline(events, isChosen: false)
        #expect(all.sources.map(\.name) == ["foreground", "network", "network 192.0.2.9", "timer"])
        #expect(all.pipelines.isEmpty && all.idlePipelines == 1)
    }

    @Test("a pipeline is drawn after its inputs, whose new copies have a wire")
    func graph() {
        let graph = PipelineGraph(Scenario.descriptions, Scenario.statuses)
        #expect(graph.rows.map(\.name) == ["catalogue", "flags", "homepage", "trust"])
        let wire = graph.wires.firstIndex { $0.origin == 0 }
        #expect(wire != nil && graph.rows[0].ownWire == wire)
        #expect(
            graph.rows.filter { row in wire.map(row.subscriptions.contains) ?? false }.map(\.name) == [
                "homepage", "trust",
            ])
        // If the upstream pipeline is not drawn, its wire is a source of signals.
        let alone = PipelineGraph([Scenario.descriptions[3]], Scenario.statuses)
        #expect(alone.wires.map(\.name) == ["timer", "operator", "pipeline catalogue"])
        #expect(alone.wires.allSatisfy { $0.origin == nil })
    }
}
