import FreshetControl
import FreshetRender

/// Finds out why a pipeline is stuck: a list of steps from its signals to its published copy, and the first step that
/// is bad. A pure function of the daemon's status.
struct Diagnosis: Hashable {
    /// The status that the diagnosis is made from.
    struct Facts {
        var daemon: DaemonStatus
        var pipeline: PipelineStatus
        /// The signals, inputs, files and hooks of the pipeline.
        var wiring: PipelineDescription
        var signals: [SignalStatus]
        /// Whether the published file exists.
        var isFileThere: Bool
    }

    enum Outcome: Hashable {
        case good, bad
        /// The step does not apply, or is not known yet.
        case neither
    }

    /// A step of the diagnosis, in one line.
    struct Step: Hashable {
        var verdict: Outcome
        var title: String
        var evidence: String
    }

    /// The result of the diagnosis.
    struct Conclusion: Hashable {
        var text: String
        /// A command that helps.
        var command: String?
    }

    private(set) var steps: [Step] = []
    /// The first problem; nil if nothing is stuck.
    private(set) var stuck: Conclusion?
    /// The result if nothing is stuck.
    private(set) var summary = Conclusion(text: "Nothing is stuck.")

    var conclusion: Conclusion { stuck ?? summary }

    /// The diagnosis if the daemon does not answer.
    ///
    /// - Parameters:
    ///   - isHanging: whether the daemon has its socket open.
    ///   - remedy: a command that helps, if one is known.
    static func withoutDaemon(_ reason: String, isHanging: Bool = false, remedy: String?) -> Diagnosis {
        var diagnosis = Diagnosis()
        let text =
            isHanging
            ? "The daemon runs but does not answer: no copy is refreshed."
            : "The daemon does not run: no copy is refreshed."
        diagnosis.add(.bad, "daemon", reason, Conclusion(text: text, command: remedy))
        return diagnosis
    }

    private init() {}

    init(_ facts: Facts, _ times: Times) {
        let daemon = facts.daemon
        add(.good, "daemon", "freshetd \(daemon.version) answers; it started \(times.past(daemon.since))")
        guard configuration(facts, times) else { return }
        held(facts, times)
        signals(facts, times)
        network(facts)
        // Before the queue: the failure of a run explains why the pipeline waits for the next attempt.
        lastRun(facts, times)
        waiting(facts, times)
        check(facts, times)
        copy(facts, times)
        hooks(facts, times)
        summarize(facts, times)
    }

    /// Adds a step.
    ///
    /// - Parameter conclusion: the result, if this is the first problem.
    private mutating func add(_ verdict: Outcome, _ title: String, _ evidence: String, _ conclusion: Conclusion? = nil)
    {
        steps.append(Step(verdict: verdict, title: title, evidence: evidence))
        if stuck == nil { stuck = conclusion }
    }

    // MARK: Steps

    /// Returns false if the other steps do not apply.
    private mutating func configuration(_ facts: Facts, _ times: Times) -> Bool {
        let name = facts.pipeline.name
        guard facts.wiring.invalid == true else {
            let order = facts.wiring.inputs.isEmpty ? "" : ", reads \(facts.wiring.inputs.joined(separator: ", "))"
            let active = "active: \(facts.wiring.source)\(order)"
            // The refused configuration may concern this pipeline or another one.
            if let refused = facts.daemon.refusedReload {
                let reload = DaemonView.short(refused, times)
                add(.neither, "configuration", "reload \(reload) ('freshetctl status'); still \(active)")
            } else {
                add(.good, "configuration", active)
            }
            return true
        }
        add(
            .bad, "configuration", facts.pipeline.failure?.message ?? "it has errors",
            Conclusion(
                text: "The pipeline does not run: its configuration has errors.", command: "freshetctl edit \(name)"))
        return false
    }

    private mutating func held(_ facts: Facts, _ times: Times) {
        guard let since = facts.pipeline.heldSince else { return add(.good, "held", "no") }
        add(
            .bad, "held", "since \(times.both(since))",
            Conclusion(
                text: "The pipeline is held: it receives signals, but does not run.",
                command: "freshetctl release \(facts.pipeline.name)"))
    }

    /// Signals that fire for single pipelines: their counts say nothing about this pipeline.
    private static let own: Set<String> = ["operator", "timer"]
    /// The most signals with a line each.
    private static let mostSignals = 8

    private mutating func signals(_ facts: Facts, _ times: Times) {
        let subscribed = facts.wiring.signals.filter { !Self.own.contains($0) }
        let rows = Dictionary(facts.signals.map { ($0.name, $0) }) { first, _ in first }
        let missing = subscribed.filter { rows[$0]?.unavailable != nil }
        // An unavailable signal is a problem only if no other signal and no timer can start a run.
        let isPlanned = facts.wiring.everyUSec != nil || facts.wiring.at != nil
        let cannotFire = !isPlanned && missing.count == subscribed.count
        for (index, name) in subscribed.enumerated() {
            guard let row = rows[name] else {
                if index < Self.mostSignals { add(.neither, "signal", "\(name): unknown to the daemon") }
                continue
            }
            guard index < Self.mostSignals || row.unavailable != nil else { continue }
            if let reason = row.unavailable {
                add(cannotFire ? .bad : .neither, "signal", "\(name): unavailable: \(reason)")
            } else {
                let last = row.lastFired.map { ", last \(times.relative($0))" } ?? ""
                add(
                    row.fired > 0 ? .good : .neither, "signal",
                    row.fired > 0
                        ? "\(name): fired \(Count.text(row.fired, "time"))\(last)"
                        : "\(name): not fired yet; \(row.fact)")
            }
        }
        if subscribed.count > Self.mostSignals {
            add(.neither, "signal", "and \(subscribed.count - Self.mostSignals) more")
        }
        if isPlanned {
            let every = facts.wiring.everyUSec.map { ["every \(TimeText.duration($0))"] } ?? []
            let terms = every + (facts.wiring.at ?? []).map { "at \($0)" }
            add(.good, "timer", terms.joined(separator: ", ") + planned(facts, times))
            return
        }
        let none = "none: neither 'every' nor 'at' is set"
        // A pipeline that only the operator refreshes needs no signal.
        guard cannotFire, !subscribed.isEmpty || facts.pipeline.lastRun == nil else {
            return add(.neither, "timer", none)
        }
        let why =
            subscribed.isEmpty
            ? "The pipeline has no signals: only a refresh runs it."
            : "No signal of the pipeline can fire on this machine: \(missing.joined(separator: ", "))."
        add(
            .bad, "timer", none,
            Conclusion(text: why, command: "freshetctl refresh \(facts.pipeline.name) --wait"))
    }

    private func planned(_ facts: Facts, _ times: Times) -> String {
        PipelineView.nextRun(facts.pipeline, times).map { ", next \($0)" } ?? ""
    }

    private mutating func network(_ facts: Facts) {
        let pipeline = facts.pipeline
        guard pipeline.needsNetwork else { return add(.neither, "network", "not needed") }
        let path = pipeline.path ?? facts.daemon.network
        guard pipeline.waitingFor == .network else { return add(.good, "network", path) }
        let detail = pipeline.waitingDetail.flatMap { $0 == pipeline.path ? nil : $0 }
        // The probe's answer `answered 302 to http://portal.example/login`.
        let page = detail.flatMap { detail in
            detail.firstRange(of: " to http").map { detail[$0.upperBound...].prefix { $0 != " " } }
        }
        add(
            .bad, "network", detail.map { "\(path); \($0)" } ?? path,
            Conclusion(
                text: page.map { "A captive portal intercepts requests. Log in at http\($0)" }
                    ?? Self.unreachable(pipeline.noRouteTo),
                command: "freshetctl signals --follow network"))
    }

    /// - Parameter target: the target to which there is no route; nil: it is not reachable for another reason.
    private static func unreachable(_ target: String?) -> String {
        switch target {
        case PipelineStatus.internet:
            "There is no route to the internet, and refresh.needs-network names no address. The pipeline runs when "
                + "there is a route. If the source is in another network, set refresh.needs-network to its address."
        case let address?: "There is no route to \(address). The pipeline runs when there is one."
        case nil: "The source is not reachable. The pipeline runs when it is."
        }
    }

    private mutating func lastRun(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        guard let run = pipeline.lastRun else {
            return add(.neither, "run", "none yet")
        }
        let text =
            PipelineView.run(run, times) + ((run.mirror ?? pipeline.mirror).map { ", from the mirror \($0)" } ?? "")
        guard let failure = pipeline.failure else {
            guard run.outcome == .failed else { return add(.good, "run", text) }
            // A failure before the daemon started does not count if no run has failed since.
            guard run.started >= facts.daemon.since else {
                return add(.neither, "run", "\(text), before the daemon started")
            }
            // If the failure names an input, that pipeline is the one to look at.
            let input = facts.wiring.inputs.first { run.failure?.contains("'\($0)'") ?? false }
            return add(
                .bad, "run", run.failure.map { "\(text): \($0)" } ?? text,
                Conclusion(
                    text: run.failure.map { "The last run failed: \($0)" } ?? "The last run failed.",
                    command: input.map { "freshetctl diagnose \($0)" } ?? "freshetctl logs \(pipeline.name) -n 20"))
        }
        let branches = pipeline.branches.map { ", \($0.failed) of \($0.total) branches" } ?? ""
        let count = Count.text(failure.attempts, "attempt")
        let remedy = pipeline.candidate == nil ? FailureRemedy(for: failure.message, facts, times) : nil
        let command =
            pipeline.candidate == nil
            ? remedy?.command ?? "freshetctl logs \(pipeline.name) -n 20"
            : "freshetctl diff \(pipeline.name) --candidate"
        add(
            .bad, "run",
            "\(text)\(branches); \(count), the first \(times.past(failure.since)): \(failure.message)",
            Conclusion(
                text: "The runs fail: \(failure.message)" + (remedy?.text.map { ". \($0)" } ?? ""),
                command: command))
        if let certificate = failure.certificate {
            add(.bad, "certificate", CertificateText(certificate: certificate, times: times).text)
        }
    }

    private mutating func waiting(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        guard let reason = pipeline.waitingFor, reason != .network else {
            guard pipeline.state == .loading else { return add(.good, "queue", "not waiting") }
            let amounts = ProgressView.amounts(pipeline).map { ": \($0)" } ?? ""
            return add(.good, "queue", "not waiting: a run is in progress\(amounts)")
        }
        let until = pipeline.waitingUntil.map { ", \(times.relative($0))" } ?? ""
        let detail = pipeline.waitingDetail.map { ": \($0)" } ?? ""
        let text = "waiting for \(PipelineView.waiting(reason))\(until)\(detail)"
        let name = pipeline.name
        switch reason {
        case .budget:
            let used = pipeline.budget.map { "; used: \(PipelineView.budget($0))" } ?? ""
            add(
                .bad, "queue", text + used,
                Conclusion(
                    text: "The request budget is used up.", command: "freshetctl refresh \(name) --force --wait"))
        case .backoff:
            add(
                .bad, "queue", text,
                Conclusion(
                    text: "The pipeline waits for its next attempt: a run failed, or the origin sent Retry-After.",
                    command: "freshetctl refresh \(name) --wait"))
        case .quiet, .permit, .memory, .sleep, .network, .filesystem, .metered, .power, .unknown:
            add(.neither, "queue", text)
        }
    }

    private mutating func check(_ facts: Facts, _ times: Times) {
        guard let candidate = facts.pipeline.candidate else { return add(.good, "checks", "nothing is rejected") }
        add(
            facts.pipeline.failure == nil ? .neither : .bad, "checks",
            "rejected \(SizeText.bytes(candidate.size)) \(times.past(candidate.rejectedAt)): \(candidate.reason)")
    }

    private mutating func copy(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        let name = pipeline.name
        if let copy = pipeline.withdrawn {
            return add(
                .bad, "copy", "withdrawn \(times.past(copy.since)): generation \(copy.number) is past its max-age",
                Conclusion(
                    text: "The copy is past its max-age and was withdrawn.",
                    command: "freshetctl refresh \(name) --wait"))
        }
        guard let generation = pipeline.generation else {
            if let error = pipeline.copyError {
                return add(.bad, "copy", error, Conclusion(text: "The copy is \(error)."))
            }
            let conclusion =
                pipeline.state == .loading || pipeline.waitingFor != nil
                ? nil : Conclusion(text: "There is no copy yet.", command: "freshetctl refresh \(name) --wait")
            return add(.bad, "copy", "none yet", conclusion)
        }
        let age = IsFresh.word(pipeline) + (pipeline.lastCheck.map { ", checked \(times.past($0))" } ?? "")
        let text = "generation \(generation.number), \(SizeText.bytes(generation.size)), \(age)"
        guard facts.isFileThere else {
            return add(
                .bad, "copy", "\(text); \(generation.path) does not exist",
                Conclusion(text: "The published file is missing.", command: "freshetctl refresh \(name) --wait"))
        }
        if generation.behind == true {
            let isPinned = generation.pinnedSince != nil
            return add(
                .bad, "copy",
                "\(text); \(PipelineView.kept(generation, times)?.text ?? "the source has other content")",
                Conclusion(
                    text: isPinned
                        ? "The copy is pinned, and the source has other content."
                        : "The copy was rolled back, and the source has other content.",
                    command: isPinned ? "freshetctl unpin \(name)" : "freshetctl history \(name)"))
        }
        if let quota = facts.daemon.cacheLimit, let used = facts.daemon.cacheBytes, used > quota {
            add(.neither, "quota", "\(SizeText.bytes(used)) of \(SizeText.bytes(quota)) are used")
        }
        switch IsFresh.word(pipeline) {
        case "fresh": add(.good, "copy", text + ", \(generation.path)")
        case "expired":
            add(
                .bad, "copy", text,
                Conclusion(text: "The copy is past its max-age.", command: "freshetctl refresh \(name) --wait"))
        default:
            // While a run is in progress or waits, there is nothing to do.
            let isInProgress = pipeline.state == .loading || pipeline.waitingFor != nil
            add(
                isInProgress ? .neither : .bad, "copy", text,
                isInProgress
                    ? nil
                    : Conclusion(text: "The next check is overdue.", command: "freshetctl refresh \(name) --wait"))
        }
    }

    private mutating func hooks(_ facts: Facts, _ times: Times) {
        let pendingHooks = facts.pipeline.hooks ?? []
        guard let failing = pendingHooks.first(where: { $0.since != nil }) else {
            if facts.wiring.hooks.isEmpty { return add(.neither, "hooks", "none") }
            return add(
                pendingHooks.isEmpty ? .good : .neither, "hooks",
                pendingHooks.isEmpty
                    ? "\(Count.text(facts.wiring.hooks.count, "hook")), none pending"
                    : "\(Count.text(pendingHooks.count, "hook")) pending")
        }
        add(
            .bad, "hooks", PipelineView.text(of: failing, times),
            Conclusion(
                // With the catalog: most failures come from the sandbox, whose errors do not name it.
                text: "The copy is published, but a hook fails: \(failing.hook).",
                command: "freshetctl logs \(facts.pipeline.name) -n 20 -x"))
    }

    private mutating func summarize(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        let next = pipeline.nextRun.map { "; the next run is \(times.relative($0.at))" } ?? ""
        if pipeline.state == .loading {
            summary.text = "Nothing is stuck: a run is in progress."
        } else if let reason = pipeline.waitingFor {
            summary.text = "Nothing is stuck: the pipeline waits for \(PipelineView.waiting(reason))."
        } else {
            summary.text = "Nothing is stuck: the copy is \(IsFresh.word(pipeline))\(next)."
        }
        summary.command = nil
    }
}
