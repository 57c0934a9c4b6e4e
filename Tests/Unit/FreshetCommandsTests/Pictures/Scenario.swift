import FreshetControl

@testable import FreshetCommands

/// An hour of a small fleet, as the daemon tells it: a start, a burst of the network, a night's sleep in short, a
/// failure.
enum Scenario {
    /// 2026-11-21 02:39:23 UTC.
    static let now: Int64 = 1_795_228_763_000_000
    static let second: Int64 = 1_000_000
    static let minute: Int64 = 60 * second

    static var times: Times { Times(now: now, timeZone: { _ in (0, "UTC") }) }

    static func description(
        _ name: String, _ signals: [String] = ["network", "operator", "reload", "resume", "start", "timer"],
        inputs: [String] = [], files: [String]? = nil, hooks: [String] = []
    ) -> PipelineDescription {
        PipelineDescription(
            name: name, source: "https://example.com/\(name)", inputs: inputs, signals: signals,
            files: files ?? ["/var/cache/freshet/current/\(name).json"], hooks: hooks,
            everyUSec: signals.contains("timer") ? 15 * minute : nil, quietUSec: 2 * second, atMostUSec: 10 * second,
            freshForUSec: minute, deadlineUSec: 5 * minute, whenRunning: "queue", needsNetwork: true)
    }

    static let descriptions = [
        description(
            "homepage", ["foreground", "operator", "parameter"], inputs: ["catalogue"],
            files: ["/var/cache/freshet/current/homepage/index.html", "/var/cache/freshet/current/homepage/list.json"],
            hooks: ["/usr/lib/freshet/examples/notify-kiosk --all"]),
        description("catalogue"),
        description(
            "flags", ["file /etc/flags.conf", "network", "operator", "start"], hooks: ["reload nginx.service"]),
        description("trust", ["operator", "pipeline catalogue", "timer"]),
    ]

    static let statuses: [PipelineStatus] = [
        status("catalogue", .loaded), status("flags", .failed), status("homepage", .loaded),
        status("trust", .waiting) { $0.waitingFor = .network },
    ]

    static func status(
        _ name: String, _ state: PipelineState, _ change: (inout PipelineStatus) -> Void = { _ in }
    ) -> PipelineStatus {
        var status = PipelineStatus(
            name: name, source: "https://example.com/\(name)", state: state,
            freshness: .fresh,
            generation: GenerationStatus(
                number: 7, size: 1_229, digest: "ab", committedAt: now - 10 * minute, path: "/current/\(name).json"),
            lastCheck: now - 3 * minute,
            lastRun: RunStatus(number: 12, started: now - 3 * minute, durationUSec: 85_000, outcome: .unchanged),
            lastCauses: [CauseStatus(signal: "timer", first: now, last: now)],
            nextRun: NextRun(at: now + 12 * minute, reason: "every 15min"))
        change(&status)
        return status
    }

    /// The signals and runs of the last hour.
    static var events: [ControlEvent] {
        var events: [ControlEvent] = []
        let begin = now - 60 * minute
        events.append(.fact("network", "reachable via 192.0.2.1 on wan0", at: begin - minute))
        // The start.
        events.append(.signal("start", number: 1, at: begin + minute))
        events += run(
            "catalogue", 1, at: begin + minute + 5_000, took: 240_000, .changed, 1, [cause("start", 1, begin + minute)])
        events += run(
            "flags", 1, at: begin + minute + 6_000, took: 80_000, .changed, 1, [cause("start", 1, begin + minute)])
        events += run(
            "homepage", 1, at: begin + minute + 260_000, took: 30_000, .changed, 1,
            [cause("pipeline", 1, begin + minute + 250_000)])
        // Each quarter of an hour.
        for quarter in 1...2 {
            let at = begin + minute + Int64(quarter) * 15 * minute
            events.append(
                .signal("timer", number: Int64(quarter), detail: "every 15min", pipeline: "catalogue", at: at))
            events += run(
                "catalogue", 1 + Int64(quarter), at: at, took: 90_000, .unchanged, 1, [cause("timer", nil, at)])
        }
        // The network is lost, and flaps when it returns: fourteen firings.
        events.append(.fact("network", "not reachable: wan0 is down or has no carrier", at: begin + 34 * minute))
        events.append(.state(.waiting, of: "flags", waitingFor: .network, at: begin + 35 * minute))
        let back = begin + 42 * minute
        events.append(.fact("network", "reachable via 192.0.2.1 on wan0", at: back))
        for number in 0..<14 {
            events.append(
                .signal(
                    "network", number: Int64(number + 1), detail: "reachable via 192.0.2.1 on wan0",
                    at: back + Int64(number) * 300_000))
        }
        events += run("flags", 2, at: back + 1_000, took: 120_000, .unchanged, 1, [cause("network", 1, back)])
        let last = back + 13 * 300_000
        events.append(.state(.waiting, of: "flags", waitingFor: .quiet, at: back + 300_000))
        events += run(
            "flags", 3, at: last + 2 * second, took: 95_000, .failed, 1,
            [
                CauseStatus(
                    signal: "network", number: 14, count: 13, first: back + 300_000, last: last,
                    detail: "reachable via 192.0.2.1 on wan0")
            ])
        events += run(
            "catalogue", 4, at: back + 1_000, took: 900_000, .changed, 2, [cause("network", 1, back)])
        events += run(
            "homepage", 2, at: back + 910_000, took: 30_000, .changed, 2, [cause("pipeline", 2, back + 905_000)])
        // A nap.
        let awake = begin + 53 * minute
        events.append(.fact("resume", "going to sleep", at: awake - 4 * minute))
        events.append(.fact("resume", "awake, after 240.0 s of sleep", at: awake))
        events.append(.signal("resume", number: 1, detail: "slept 240.0 s", at: awake + 1_000))
        events += run(
            "catalogue", 5, at: awake + 2_000, took: 100_000, .unchanged, 2, [cause("resume", 1, awake + 1_000)])
        // The operator, twice in a row.
        let asked = begin + 57 * minute
        events.append(.signal("operator", number: 1, detail: "refresh", pipeline: "flags", at: asked))
        events += run("flags", 4, at: asked + 500, took: 1_500_000, .superseded, nil, [cause("operator", 1, asked)])
        events.append(.signal("operator", number: 2, detail: "refresh", pipeline: "flags", at: asked + 1_400_000))
        events += run(
            "flags", 5, at: asked + 1_510_000, took: 70_000, .changed, 2, [cause("operator", 2, asked + 1_400_000)])
        events.append(.signal("network", number: 15, detail: "reachable via 192.0.2.9 on wan0", at: asked + 5 * second))
        events.append(.state(.waiting, of: "trust", waitingFor: .network, at: begin + 58 * minute))
        return events.sorted { $0.at < $1.at }
    }

    static var history: RecentHistory {
        RecentHistory(events: events, since: now - 60 * minute, until: now)
    }

    private static func cause(_ signal: String, _ number: Int64?, _ at: Int64) -> CauseStatus {
        CauseStatus(signal: signal, number: number, first: at, last: at)
    }

    private static func run(
        _ pipeline: String, _ number: Int64, at: Int64, took: Int64, _ outcome: RunOutcome, _ generation: Int64?,
        _ causes: [CauseStatus]
    ) -> [ControlEvent] {
        let started = RunStatus(number: number, started: at, causes: causes)
        var ended = started
        ended.durationUSec = took
        ended.outcome = outcome
        ended.generation = generation
        if outcome == .failed { ended.failure = "the origin answered 503 Service Unavailable" }
        return [
            .runStarted(started, of: pipeline, at: at), .runEnded(ended, of: pipeline, at: at + took),
        ]
    }
}
