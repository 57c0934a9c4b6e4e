import FreshetControl
import FreshetRender

/// A walk from the signals that a pipeline hears to the copy that its readers have, and where it is stuck. A pure function
/// of what the daemon says.
struct Diagnosis: Hashable {
    /// What the daemon says.
    struct Facts {
        var daemon: DaemonStatus
        var pipeline: PipelineStatus
        /// How it is wired.
        var wiring: PipelineDescription
        var signals: [SignalStatus]
        /// Whether readers find its file.
        var isFileThere: Bool
    }

    enum Outcome: Hashable {
        case good, bad
        /// It does not apply, or nothing can be said yet.
        case neither
    }

    /// A station on the way, in one line.
    struct Step: Hashable {
        var verdict: Outcome
        var title: String
        var evidence: String
    }

    /// What it comes to.
    struct Conclusion: Hashable {
        var text: String
        /// What to do about it.
        var command: String?
    }

    private(set) var steps: [Step] = []
    /// Where the way ends first; nil: nowhere.
    private(set) var stuck: Conclusion?
    /// How things are, if nothing is stuck.
    private(set) var summary = Conclusion(text: "Nothing is stuck.")

    var conclusion: Conclusion { stuck ?? summary }

    /// The daemon does not answer.
    ///
    /// - Parameters:
    ///   - isThere: whether there is one, which says nothing.
    ///   - remedy: a command; nil: there is none that is known to help.
    static func withoutDaemon(_ reason: String, isThere: Bool = false, remedy: String?) -> Diagnosis {
        var diagnosis = Diagnosis()
        let text =
            isThere
            ? "The daemon listens, and answers nobody: nothing is kept fresh."
            : "The daemon does not run: nothing is kept fresh."
        diagnosis.add(.bad, "daemon", reason, Conclusion(text: text, command: remedy))
        return diagnosis
    }

    private init() {}

    init(_ facts: Facts, _ times: Times) {
        let daemon = facts.daemon
        add(.good, "daemon", "freshetd \(daemon.version) answers, since \(times.relative(daemon.since))")
        guard configuration(facts, times) else { return }
        held(facts, times)
        signals(facts, times)
        network(facts)
        // What a run failed of explains why it waits for the next attempt.
        lastRun(facts, times)
        waiting(facts, times)
        check(facts, times)
        copy(facts, times)
        hooks(facts, times)
        summarise(facts, times)
    }

    /// - Parameter conclusion: that the way ends here, if it has not ended before.
    private mutating func add(_ verdict: Outcome, _ title: String, _ evidence: String, _ conclusion: Conclusion? = nil)
    {
        steps.append(Step(verdict: verdict, title: title, evidence: evidence))
        if stuck == nil { stuck = conclusion }
    }

    // MARK: Stations

    /// Returns whether there is anything further to look at.
    private mutating func configuration(_ facts: Facts, _ times: Times) -> Bool {
        let name = facts.pipeline.name
        guard facts.wiring.faulty == true else {
            let order = facts.wiring.inputs.isEmpty ? "" : ", reads \(facts.wiring.inputs.joined(separator: ", "))"
            let force = "in force: \(facts.wiring.source)\(order)"
            // The refused one may have been about this pipeline, or not.
            if let refused = facts.daemon.refusedReload {
                let reload = DaemonView.short(refused, times)
                add(.neither, "configuration", "reload \(reload) ('freshetctl status'); still \(force)")
            } else {
                add(.good, "configuration", force)
            }
            return true
        }
        add(
            .bad, "configuration", facts.pipeline.failure?.message ?? "it has faults",
            Conclusion(
                text: "It does not run, since its configuration has faults.", command: "freshetctl edit \(name)"))
        return false
    }

    private mutating func held(_ facts: Facts, _ times: Times) {
        guard let since = facts.pipeline.heldSince else { return add(.good, "held", "no") }
        add(
            .bad, "held", "since \(times.both(since))",
            Conclusion(
                text: "The operator holds it: signals are heard, and nothing runs.",
                command: "freshetctl release \(facts.pipeline.name)"))
    }

    /// Those whose rows show what fires for others too: each pipeline hears them, and they say nothing of it.
    private static let own: Set<String> = ["operator", "timer"]
    /// More of them in lines of their own are no help.
    private static let mostSignals = 8

    private mutating func signals(_ facts: Facts, _ times: Times) {
        let heard = facts.wiring.signals.filter { !Self.own.contains($0) }
        let rows = Dictionary(facts.signals.map { ($0.name, $0) }) { first, _ in first }
        let missing = heard.filter { rows[$0]?.unavailable != nil }
        // What the machine lacks is no fault as long as anything else, or the timer, starts a run.
        let isSilent = facts.wiring.everyUSec == nil && missing.count == heard.count
        for (index, name) in heard.enumerated() {
            guard let row = rows[name] else {
                if index < Self.mostSignals { add(.neither, "signal", "\(name): nothing is known of it") }
                continue
            }
            guard index < Self.mostSignals || row.unavailable != nil else { continue }
            if let reason = row.unavailable {
                add(isSilent ? .bad : .neither, "signal", "\(name): unavailable: \(reason)")
            } else {
                let last = row.lastFired.map { ", last \(times.relative($0))" } ?? ""
                add(
                    row.fired > 0 ? .good : .neither, "signal",
                    row.fired > 0
                        ? "\(name): fired \(Count.text(row.fired, "time"))\(last)"
                        : "\(name): has not fired; \(row.fact)")
            }
        }
        if heard.count > Self.mostSignals { add(.neither, "signal", "and \(heard.count - Self.mostSignals) more") }
        if let every = facts.wiring.everyUSec {
            add(.good, "timer", "every \(TimeText.duration(every))" + planned(facts, times))
            return
        }
        let none = "none: it has no 'every'"
        // Whoever refreshes by hand alone has no fault.
        guard isSilent, !heard.isEmpty || facts.pipeline.lastRun == nil else { return add(.neither, "timer", none) }
        let why =
            heard.isEmpty
            ? "It listens to nothing but the operator."
            : "Nothing that it listens to can fire on this machine: \(missing.joined(separator: ", "))."
        add(
            .bad, "timer", none,
            Conclusion(text: why, command: "freshetctl refresh \(facts.pipeline.name) --wait"))
    }

    private func planned(_ facts: Facts, _ times: Times) -> String {
        facts.pipeline.nextRun.map { ", next \(times.relative($0.at)) (\($0.reason))" } ?? ""
    }

    private mutating func network(_ facts: Facts) {
        let pipeline = facts.pipeline
        guard pipeline.needsNetwork else { return add(.neither, "network", "not needed") }
        let path = pipeline.path ?? facts.daemon.network
        guard pipeline.waitingFor == .network else { return add(.good, "network", path) }
        let detail = pipeline.waitingDetail.flatMap { $0 == pipeline.path ? nil : $0 }
        add(
            .bad, "network", detail.map { "\(path); \($0)" } ?? path,
            Conclusion(
                text: "The network does not lead to its source. It runs by itself when it does.",
                command: "freshetctl signals --follow network"))
    }

    private mutating func lastRun(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        guard let run = pipeline.lastRun else {
            return add(.neither, "run", "none yet")
        }
        let text = PipelineView.run(run, times)
        guard let failure = pipeline.failure else {
            guard run.outcome == .failed else { return add(.good, "run", text) }
            // What failed before the daemon was started, and was not due again, is over.
            guard run.started >= facts.daemon.since else {
                return add(.neither, "run", "\(text), before the daemon was started")
            }
            // What it is made of is where to look.
            let input = facts.wiring.inputs.first { run.failure?.contains("'\($0)'") ?? false }
            return add(
                .bad, "run", run.failure.map { "\(text): \($0)" } ?? text,
                Conclusion(
                    text: run.failure.map { "Its last run failed: \($0)" } ?? "Its last run failed.",
                    command: input.map { "freshetctl diagnose \($0)" } ?? "freshetctl logs \(pipeline.name) -n 20"))
        }
        let branches = pipeline.branches.map { ", \($0.failed) of \($0.total) branches" } ?? ""
        let count = Count.text(failure.attempts, "attempt")
        let command =
            pipeline.candidate == nil
            ? "freshetctl logs \(pipeline.name) -n 20" : "freshetctl diff \(pipeline.name) --candidate"
        add(
            .bad, "run",
            "\(text)\(branches); \(count) since \(times.relative(failure.since)): \(failure.message)",
            Conclusion(text: "Its runs fail: \(failure.message)", command: command))
    }

    private mutating func waiting(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        guard let reason = pipeline.waitingFor, reason != .network else {
            guard pipeline.state == .loading else { return add(.good, "waits", "for nothing") }
            let amounts = ProgressView.amounts(pipeline).map { ": \($0)" } ?? ""
            return add(.good, "waits", "for nothing: a run is under way\(amounts)")
        }
        let until = pipeline.waitingUntil.map { ", \(times.relative($0))" } ?? ""
        let detail = pipeline.waitingDetail.map { ": \($0)" } ?? ""
        let text = "for \(PipelineView.waiting(reason))\(until)\(detail)"
        let name = pipeline.name
        switch reason {
        case .budget:
            let spent = pipeline.budget.map { "; spent: \(PipelineView.budget($0))" } ?? ""
            add(
                .bad, "waits", text + spent,
                Conclusion(
                    text: "Its budget of requests is spent.", command: "freshetctl refresh \(name) --force --wait"))
        case .backoff:
            add(
                .bad, "waits", text,
                Conclusion(
                    text: "It waits for its next attempt, since one failed or the origin asked for patience.",
                    command: "freshetctl refresh \(name) --wait"))
        case .quiet, .slot, .memory, .sleep, .network, .filesystem, .unknown: add(.neither, "waits", text)
        }
    }

    private mutating func check(_ facts: Facts, _ times: Times) {
        guard let candidate = facts.pipeline.candidate else { return add(.good, "checks", "nothing is refused") }
        add(
            facts.pipeline.failure == nil ? .neither : .bad, "checks",
            "refused \(SizeText.bytes(candidate.size)) \(times.relative(candidate.refusedAt)): \(candidate.reason)")
    }

    private mutating func copy(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        let name = pipeline.name
        if let copy = pipeline.withdrawn {
            return add(
                .bad, "copy", "withdrawn \(times.relative(copy.since)): generation \(copy.number) is past its max-age",
                Conclusion(
                    text: "Its copy is too old for readers, and was withdrawn.",
                    command: "freshetctl refresh \(name) --wait"))
        }
        guard let generation = pipeline.generation else {
            let conclusion =
                pipeline.state == .loading || pipeline.waitingFor != nil
                ? nil : Conclusion(text: "There is no copy yet.", command: "freshetctl refresh \(name) --wait")
            return add(.bad, "copy", "none yet", conclusion)
        }
        let age = IsFresh.word(pipeline) + (pipeline.lastCheck.map { ", checked \(times.relative($0))" } ?? "")
        let text = "generation \(generation.number), \(SizeText.bytes(generation.size)), \(age)"
        guard facts.isFileThere else {
            return add(
                .bad, "copy", "\(text); there is nothing at \(generation.path)",
                Conclusion(text: "Its file has gone from the cache.", command: "freshetctl refresh \(name) --wait"))
        }
        if generation.behind == true {
            let isPinned = generation.pinnedSince != nil
            return add(
                .bad, "copy", "\(text); \(PipelineView.held(generation, times) ?? "the source has other content")",
                Conclusion(
                    text: isPinned
                        ? "It is pinned, and the source has other content."
                        : "It was rolled back, and the source has other content.",
                    command: isPinned ? "freshetctl unpin \(name)" : "freshetctl history \(name)"))
        }
        if let room = facts.daemon.cacheLimit, let used = facts.daemon.cacheBytes, used > room {
            add(.neither, "room", "\(SizeText.bytes(used)) of \(SizeText.bytes(room)) are used")
        }
        switch IsFresh.word(pipeline) {
        case "fresh": add(.good, "copy", text + ", \(generation.path)")
        case "expired":
            add(
                .bad, "copy", text,
                Conclusion(text: "Its copy is past its max-age.", command: "freshetctl refresh \(name) --wait"))
        default:
            // While it is being made good there is nothing to do.
            let isUnderWay = pipeline.state == .loading || pipeline.waitingFor != nil
            add(
                isUnderWay ? .neither : .bad, "copy", text,
                isUnderWay
                    ? nil
                    : Conclusion(text: "Its next check is overdue.", command: "freshetctl refresh \(name) --wait"))
        }
    }

    private mutating func hooks(_ facts: Facts, _ times: Times) {
        let debts = facts.pipeline.hooks ?? []
        guard let debt = debts.first(where: { $0.since != nil }) else {
            if facts.wiring.hooks.isEmpty { return add(.neither, "hooks", "none") }
            return add(
                debts.isEmpty ? .good : .neither, "hooks",
                debts.isEmpty
                    ? "\(Count.text(facts.wiring.hooks.count, "hook")), all told"
                    : "\(Count.text(debts.count, "hook")) to be told")
        }
        add(
            .bad, "hooks", PipelineView.text(of: debt, times),
            Conclusion(
                // With what the catalog says: most of them meet the sandbox, whose errors do not speak of it.
                text: "The copy is there, and a hook fails: \(debt.hook).",
                command: "freshetctl logs \(facts.pipeline.name) -n 20 -x"))
    }

    private mutating func summarise(_ facts: Facts, _ times: Times) {
        let pipeline = facts.pipeline
        let next = pipeline.nextRun.map { "; the next run is \(times.relative($0.at))" } ?? ""
        if pipeline.state == .loading {
            summary.text = "Nothing is stuck: a run is under way."
        } else if let reason = pipeline.waitingFor {
            summary.text = "Nothing is stuck: it waits for \(PipelineView.waiting(reason))."
        } else {
            summary.text = "Nothing is stuck: the copy is \(IsFresh.word(pipeline))\(next)."
        }
        summary.command = nil
    }
}
