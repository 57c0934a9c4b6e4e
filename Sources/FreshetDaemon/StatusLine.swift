import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import Glibc

/// What `systemctl status` shows of the daemon: how many pipelines are in which state, which of them fail and why, the
/// network, and what comes next. One line for people, such as
///
///     3 pipelines: 2 loaded, 1 failed (jwks: id.example.com answered 404 Not Found, since 12:03); network via
///     192.0.2.1 on wan0; next refresh 12:15 (flags)
struct StatusLine: Sendable {
    /// So many failed pipelines are named; of more the first ones are.
    static let namedFailures = 3
    /// The most characters of a failure's reason: the whole of it is in `freshetctl status`.
    static let reasonLimit = 80

    struct Failure: Hashable, Sendable {
        var pipeline: String
        var reason: String
        /// Wall-clock microseconds since 1970.
        var since: Int64
    }

    var counts = PipelineCounts()
    /// The first ones by name, at most ``namedFailures``.
    private(set) var failures: [Failure] = []
    /// The pipelines whose copies are past their `max-age`, by name.
    var expired: [String] = []
    /// Those of which readers find none for that, by name.
    var withdrawn: [String] = []
    /// Hooks that have failed and are owed.
    var failingHooks = 0
    var network = "not known"
    /// The next run that is planned: wall-clock microseconds since 1970.
    var next: (pipeline: String, at: Int64)?
    /// The last reload, if it was refused.
    var refusedReload: RefusedReload?
    /// What a worker has been busy with for long.
    var slowDisk: (work: String, seconds: Int64)?

    /// Names a pipeline that fails; `counts` has it too. What is known of it is asked for only if it is to be shown.
    mutating func add(_ pipeline: String, _ failure: () -> (reason: String, since: Int64)) {
        let place = failures.firstIndex { pipeline < $0.pipeline } ?? failures.count
        guard place < Self.namedFailures else { return }
        let (reason, since) = failure()
        failures.insert(Failure(pipeline: pipeline, reason: reason, since: since), at: place)
        if failures.count > Self.namedFailures { failures.removeLast() }
    }

    /// - Parameters:
    ///   - now: wall-clock microseconds since 1970.
    ///   - offset: seconds east of UTC.
    func text(now: Int64, offset: Int64) -> String {
        let day = Self.day(now, offset)
        func moment(_ instant: Int64) -> String { Self.moment(instant, offset, today: day) }
        var states = [
            (counts.loaded, "loaded"), (counts.loading, "loading"), (counts.waiting, "waiting"), (counts.idle, "idle"),
            (counts.held, "held"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if counts.failed > 0 {
            var named = failures.map { "\($0.pipeline): \(Self.cut($0.reason)), since \(moment($0.since))" }
            let others = Int(counts.failed) - named.count
            if others > 0, !named.isEmpty { named.append("and \(others) more") }
            states.append("\(counts.failed) failed" + (named.isEmpty ? "" : " (\(named.joined(separator: "; ")))"))
        }
        var parts = ["\(counts.total) \(counts.total == 1 ? "pipeline" : "pipelines")"]
        if !states.isEmpty { parts[0] += ": " + states.joined(separator: ", ") }
        if let refused = refusedReload {
            parts.insert(
                "reload refused \(moment(refused.at)) (\(refused.faults) \(refused.faults == 1 ? "fault" : "faults")), "
                    + "the configuration before is in force", at: 0)
        }
        if let slowDisk { parts.insert("disk slow: \(slowDisk.work) for \(slowDisk.seconds) s", at: 0) }
        for (names, what) in [(expired, "expired"), (withdrawn, "withdrawn")] where !names.isEmpty {
            let named = names.sorted().prefix(Self.namedFailures)
            let others = names.count - named.count
            parts.append(
                "\(names.count) \(what) (\(named.joined(separator: ", "))"
                    + (others > 0 ? " and \(others) more)" : ")"))
        }
        if failingHooks > 0 { parts.append("\(failingHooks) \(failingHooks == 1 ? "hook fails" : "hooks fail")") }
        parts.append("network \(network)")
        if let next { parts.append("next refresh \(moment(next.at)) (\(next.pipeline))") }
        return parts.joined(separator: "; ")
    }

    private static func cut(_ reason: String) -> String {
        reason.count > reasonLimit ? reason.prefix(reasonLimit - 1) + "…" : reason
    }

    private static func day(_ instant: Int64, _ offset: Int64) -> Int64 {
        let seconds = instant / 1_000_000 + offset
        return (seconds - ((seconds % 86_400) + 86_400) % 86_400) / 86_400
    }

    /// The time of day, and of another day how far away that is.
    private static func moment(_ instant: Int64, _ offset: Int64, today: Int64) -> String {
        let seconds = instant / 1_000_000 + offset
        let ofDay = ((seconds % 86_400) + 86_400) % 86_400
        let time = "\(twoDigits(ofDay / 3_600)):\(twoDigits(ofDay % 3_600 / 60))"
        switch day(instant, offset) - today {
        case 0: return time
        case 1: return "tomorrow \(time)"
        case -1: return "yesterday \(time)"
        case let days where days > 0: return "in \(days) days"
        case let days: return "\(-days) days ago"
        }
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension WallClock {
    /// Seconds east of UTC by which this machine's clock shows a moment, in microseconds since 1970.
    static func offset(at instant: Int64) -> Int64 {
        var seconds = time_t(instant / 1_000_000)
        var local = tm()
        return localtime_r(&seconds, &local) == nil ? 0 : Int64(local.tm_gmtoff)
    }
}

extension Supervisor {
    /// Looks at all pipelines, while other work goes on.
    ///
    /// - Parameter job: what a log calls the work.
    func lookAtPipelines(_ job: String, _ look: (String, PipelineSnapshot) -> Void) async {
        for (index, (name, hosted)) in pipelines.enumerated() {
            await giveWay(before: index, job)
            look(name, hosted.runner.glance)
        }
    }

    /// Work on files that takes longer than this is shown in the status line.
    static let slowDisk: Duration = .seconds(5)

    /// What is to be said of the daemon now.
    func statusLine() async -> String {
        var line = StatusLine()
        var states: [PipelineState] = []
        for (name, fault) in faulty { line.add(name) { (fault.message, fault.since) } }
        var next: (pipeline: String, at: ContinuousClock.Instant)?
        await lookAtPipelines("status line") { name, glance in
            states.append(PipelineState(glance.activity))
            if case .failed(let reason, let since, _) = glance.activity {
                line.add(name) {
                    (readers.isPublic(name) ? reason.message : reason.publicMessage, WallClock.microseconds(at: since))
                }
            }
            if glance.isWithdrawn { line.withdrawn.append(name) } else if glance.isExpired { line.expired.append(name) }
            if let planned = glance.next, next.map({ planned < $0.at }) ?? true { next = (name, planned) }
        }
        let now = WallClock.now
        line.counts = PipelineCounts(states + Array(repeating: .failed, count: faulty.count))
        line.next = next.map { ($0.pipeline, WallClock.microseconds(at: $0.at)) }
        line.failingHooks = parts?.hooks.failing ?? 0
        line.refusedReload = refusedReload
        line.network = parts?.elsewhere.fact.description ?? "not known"
        let work = [pools.oldestRunning, parts?.store.committers.oldestRunning].compactMap(\.self).min {
            $0.since < $1.since
        }
        if let work {
            let time = ContinuousClock.now - work.since
            if time >= Self.slowDisk { line.slowDisk = (work.name, time.components.seconds) }
        }
        return line.text(now: now, offset: WallClock.offset(at: now))
    }
}
