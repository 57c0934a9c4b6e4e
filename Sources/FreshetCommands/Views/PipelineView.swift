import FreshetControl
import FreshetRender

/// A pipeline in detail, as a block of lines.
struct PipelineView {
    let pipeline: PipelineStatus
    let times: Times
    let palette: Palette
    /// Whether the progress of a run is drawn as a bar.
    var hasBars = false
    /// The width of the terminal; nil for no limit.
    var columns: Int?

    /// The lines of `status`.
    var lines: [String] {
        var block = LabelledText(palette: palette, columns: columns)
        func add(_ label: String, _ text: String, _ style: Palette.Style = .plain) { block.add(label, text, style) }
        let description = pipeline.description.map { " - \($0)" } ?? ""
        block.add(title: pipeline.name + description, mark: "●", style)
        add("Source", pipeline.source)
        if let mirror = pipeline.mirror { add("Mirror", mirror) }
        add("State", state, style)
        if let generation = pipeline.generation {
            add(
                "Copy",
                "generation \(generation.number), \(SizeText.bytes(generation.size)), "
                    + "since \(times.both(generation.committedAt))"
                    + (generation.truncated == true ? ", truncated: there are more pages" : ""))
            if let kept = Self.kept(generation, times) { add(kept.label, kept.text, .busy) }
            if let comment = generation.comment { add("Signed", comment) }
            if let directory = generation.directory { add("Files", directory) } else { add("File", generation.path) }
        } else if let copy = pipeline.withdrawn {
            add(
                "Copy",
                "withdrawn \(times.past(copy.since)); generation \(copy.number), \(SizeText.bytes(copy.size)), is kept",
                .bad)
        } else if let error = pipeline.copyError {
            add("Copy", error, .bad)
        } else {
            add("Copy", "none yet")
        }
        if let check = pipeline.lastCheck { add("Checked", times.past(check)) }
        if let fleet = pipeline.fleet { add("Fleet", text(of: fleet)) }
        if let origin = pipeline.originExpires { add("Fresh", "until \(times.both(origin)) (stated by the origin)") }
        if let expires = pipeline.expires { add("Expires", "\(times.relative(expires)) (max-age)") }
        if let expires = pipeline.contentExpires {
            add("Valid", "until \(times.both(expires)) (stated by the content)")
        }
        if let run = pipeline.lastRun { add("Last run", Self.run(run, times)) }
        if let causes = Self.causes(pipeline.lastCauses, times) { add("Causes", causes) }
        if let ignored = pipeline.ignoredSignals {
            add("Ignored", "\(Count.text(ignored, "signal")) during the run (when-running: ignore)")
        }
        if let next = Self.nextRun(pipeline, times) { add("Next run", next) }
        if let budget = pipeline.budget { add("Budget", Self.budget(budget)) }
        if let parameters = pipeline.parameters {
            add("Set", parameters.map(ParameterView.text).joined(separator: ", "))
        }
        if pipeline.needsNetwork, let path = pipeline.path { add("Network", path) }
        // Without a failed run, the branches say everything that the failure says.
        if let branches = pipeline.branches {
            add("Branches", "\(branches.failed) of \(branches.total) fail", .bad)
            for branch in branches.failing { block.add(below: text(of: branch)) }
        }
        if let more = pipeline.more { add("More", Self.places(more)) }
        for pending in pipeline.hooks ?? [] {
            add("Hook", Self.text(of: pending, times), pending.since == nil ? .busy : .bad)
        }
        let failure = pipeline.branches == nil || pipeline.state == .failed ? pipeline.failure : nil
        if let failure {
            add("Error", failure.message, .bad)
            add("Failing", "\(Count.text(failure.attempts, "attempt")), since \(times.both(failure.since))")
        }
        if let candidate = pipeline.candidate {
            // The error of the last run often has the reason already.
            let reason = failure?.message.contains(candidate.reason) == true ? "" : ": \(candidate.reason)"
            add(
                "Rejected",
                "\(SizeText.bytes(candidate.size)), \(times.past(candidate.rejectedAt))\(reason)")
            block.add(below: "'freshetctl diff \(pipeline.name) --candidate' shows it, 'accept' publishes it")
        }
        return block.lines
    }

    /// Such as `number 7, fetched by ams-3, checked 2s ago`.
    private func text(of fleet: FleetPart) -> String {
        var parts = [fleet.machine.map { "fetched by \($0)" } ?? "this machine requests the content"]
        if let number = fleet.number { parts.insert("number \(number)", at: 0) }
        if let checked = fleet.checked { parts.append("checked \(times.past(checked))") }
        if let waits = fleet.waits { parts.append("the run waits for \(waits)") }
        if let share = fleet.rollOut { parts.append("new content has reached \(PercentText.text(share)) of the fleet") }
        return parts.joined(separator: ", ")
    }

    /// Such as `comedy: the origin answered 404 Not Found, 3 attempts, first 5min ago`.
    private func text(of branch: BranchFailureStatus) -> String {
        let path = branch.path.joined(separator: "/")
        let attempts = Count.text(branch.attempts, "attempt")
        return "\(path): \(branch.message), \(attempts), first \(times.past(branch.since))"
    }

    /// Such as `/usr/lib/notify kiosk: exited with status 1, 3 attempts for generation 7, first failed 5min ago, next
    /// in 12s`.
    static func text(of pending: PendingHook, _ times: Times) -> String {
        // The label says already that it is a hook: the name of a hook of several pipelines stands alone.
        var text = (pending.sharedName ?? pending.hook) + (pending.description.map { " (\($0))" } ?? "")
        let waiting = pending.waits.map { " waits for \($0)" } ?? " waits to run"
        guard let since = pending.since else {
            text += pending.running ? " is running" : waiting
            return text + " for generation \(pending.generation)"
                + (pending.next.map { ", \(times.relative($0))" } ?? "")
        }
        if let error = pending.error { text += ": \(error)" }
        if pending.attempts > 0 { text += ", \(Count.text(pending.attempts, "attempt"))" }
        text += " for generation \(pending.generation), first failed \(times.past(since))"
        if pending.running { return text + ", is running again" }
        return text + (pending.next.map { ", next \(times.relative($0))" } ?? ",\(waiting)")
    }

    /// The branches with further pages: the keys for `load-more`, and the number of pages so far.
    static func places(_ more: MorePages) -> String {
        let shown = more.places.map { place in
            let pages = "after \(Count.text(place.pages, "page"))"
            return place.path.isEmpty ? pages : "\(place.path.joined(separator: " ")) (\(pages))"
        }
        let others = more.total - Int64(shown.count)
        return shown.joined(separator: ", ") + (others > 0 ? " and \(others) others" : "")
    }

    private var style: Palette.Style { Palette.Style(pipeline.state, pipeline.freshness) }

    private var state: String {
        var text = pipeline.state.rawValue
        if let reason = pipeline.waitingFor {
            // Such as "waiting for the network" and "failed; next attempt in 1h".
            let words = reason == .backoff ? "next attempt" : "waiting for \(Self.waiting(reason))"
            text = pipeline.state == .waiting && reason != .backoff ? words : "\(text); \(words)"
        }
        if let since = pipeline.heldSince {
            // While a last run is in progress, or if the configuration is invalid, the state is not `held`.
            text += "\(pipeline.state == .held ? "" : ", held") since \(times.both(since))"
        }
        if let until = pipeline.waitingUntil {
            text += (pipeline.waitingFor == .backoff ? " " : ", ") + times.relative(until)
        }
        // The network has its own line.
        if let detail = pipeline.waitingDetail, detail != pipeline.path { text += ": \(detail)" }
        if hasBars, let bar = ProgressView.bar(pipeline) {
            text += " " + (columns == nil ? bar : LabelledText.word(bar))
        }
        if let amounts = ProgressView.amounts(pipeline) { text += ", \(amounts)" }
        if let freshness = pipeline.freshness { text += "; content is \(freshness.rawValue)" }
        return text
    }

    /// The words after "waiting for".
    static func waiting(_ reason: WaitingReason) -> String {
        switch reason {
        case .network: "the network"
        case .quiet: "the quiet period"
        case .backoff: "the next attempt"
        case .budget: "its budget"
        case .permit: "the request limit"
        case .memory: "memory"
        case .sleep: "the machine to wake up"
        case .filesystem: "the file system"
        case .metered: "an unmetered connection"
        case .power: "mains power"
        case .unknown: "something unknown"
        }
    }

    /// A label and a text for a copy that is not replaced by the content of the source: it is pinned or was rolled
    /// back. Nil for any other copy.
    static func kept(_ generation: GenerationStatus, _ times: Times) -> (label: String, text: String)? {
        let isBehind = generation.behind == true
        guard let since = generation.pinnedSince else {
            guard isBehind else { return nil }
            return ("Rollback", "the source has other content; its next change replaces this copy")
        }
        return ("Pinned", "since \(times.both(since))" + (isBehind ? "; the source has other content" : ""))
    }

    /// Such as `in 12min (timer)`; from an hour on with the date. After a failed run, the timer is set by the backoff.
    static func nextRun(_ pipeline: PipelineStatus, _ times: Times) -> String? {
        pipeline.nextRun.map { next in
            let isBackoff = next.reason == "retry" || next.reason == "timer" && pipeline.state == .failed
            let hour: Int64 = 3_600_000_000
            let date = next.at - times.now >= hour ? "\(times.absolute(next.at)); " : ""
            return "\(date)\(times.relative(next.at)) (\(isBackoff ? "backoff" : next.reason))"
        }
    }

    /// Such as `12 of 500 requests in 24h`.
    static func budget(_ budget: BudgetStatus) -> String {
        "\(budget.used) of \(Count.text(budget.limit, "request")) in \(TimeText.duration(budget.periodUSec))"
    }

    /// Such as `#12 unchanged after 85 ms, 3min 2s ago`.
    static func run(_ run: RunStatus, _ times: Times) -> String {
        let outcome = run.outcome?.rawValue ?? "in progress"
        let duration = run.durationUSec.map { " after \(TimeText.duration($0))" } ?? ""
        return "#\(run.number) \(outcome)\(duration), \(times.past(run.started))"
    }

    /// Such as `network (2, default route via enp3s0), timer`; nil if there are none.
    static func causes(_ causes: [CauseStatus], _ times: Times) -> String? {
        guard !causes.isEmpty else { return nil }
        return causes.map { cause in
            let facts = [cause.count > 1 ? "\(cause.count) times" : nil, cause.detail].compactMap { $0 }
            return facts.isEmpty ? cause.signal : "\(cause.signal) (\(facts.joined(separator: ", ")))"
        }.joined(separator: ", ")
    }
}

extension Palette.Style {
    /// The style of a pipeline's state.
    init(_ state: PipelineState, _ freshness: Freshness?) {
        self =
            switch state {
            case _ where freshness == .expired: .bad
            case .loaded: .good
            case .failed: .bad
            case .waiting, .loading: .busy
            case .idle, .held, .unknown: .plain
            }
    }
}
