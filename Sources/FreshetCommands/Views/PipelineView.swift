import FreshetControl
import FreshetRender

/// A pipeline for people, as a block of lines.
struct PipelineView {
    let pipeline: PipelineStatus
    let times: Times
    let palette: Palette
    /// Whether how far a run is may be drawn.
    var hasBars = false
    /// The terminal's columns, in which the block is to fit; nil: a line is as long as it is.
    var columns: Int?

    /// The lines of `status`.
    var lines: [String] {
        var block = LabelledText(palette: palette, columns: columns)
        func add(_ label: String, _ text: String, _ style: Palette.Style = .plain) { block.add(label, text, style) }
        let description = pipeline.description.map { " - \($0)" } ?? ""
        block.add(title: pipeline.name + description, mark: "●", style)
        add("Source", pipeline.source)
        add("State", state, style)
        if let generation = pipeline.generation {
            add(
                "Copy",
                "generation \(generation.number), \(SizeText.bytes(generation.size)), "
                    + "since \(times.both(generation.committedAt))"
                    + (generation.truncated == true ? ", truncated: there are more pages" : ""))
            if let held = Self.held(generation, times) { add("Held", held, .busy) }
            if let comment = generation.comment { add("Signed", comment) }
            if let directory = generation.directory { add("Files", directory) } else { add("File", generation.path) }
        } else if let copy = pipeline.withdrawn {
            add(
                "Copy",
                "withdrawn \(times.relative(copy.since)); generation \(copy.number), \(SizeText.bytes(copy.size)), is kept",
                .bad)
        } else {
            add("Copy", "none yet")
        }
        if let check = pipeline.lastCheck { add("Checked", times.relative(check)) }
        if let origin = pipeline.originExpires { add("Fresh", "until \(times.both(origin)), says the origin") }
        if let expires = pipeline.expires { add("Expires", "\(times.relative(expires)) (max-age)") }
        if let expires = pipeline.contentExpires { add("Valid", "until \(times.both(expires)), states the content") }
        if let run = pipeline.lastRun { add("Last run", Self.run(run, times)) }
        if let causes = Self.causes(pipeline.lastCauses, times) { add("Causes", causes) }
        if let next = pipeline.nextRun { add("Next run", "\(times.relative(next.at)) (\(next.reason))") }
        if let budget = pipeline.budget { add("Budget", Self.budget(budget)) }
        if let parameters = pipeline.parameters {
            add("Set", parameters.map(ParameterView.text).joined(separator: ", "))
        }
        if pipeline.needsNetwork, let path = pipeline.path { add("Network", path) }
        // Branches of a copy that was made say all that its failure says.
        if let branches = pipeline.branches {
            add("Branches", "\(branches.failed) of \(branches.total) fail", .bad)
            for branch in branches.failing { block.add(below: text(of: branch)) }
        }
        if let more = pipeline.more { add("More", Self.places(more)) }
        for debt in pipeline.hooks ?? [] { add("Hook", Self.text(of: debt, times), debt.since == nil ? .busy : .bad) }
        if let failure = pipeline.failure, pipeline.branches == nil || pipeline.state == .failed {
            add("Error", failure.message, .bad)
            add("Since", "\(times.both(failure.since)), \(Count.text(failure.attempts, "attempt"))")
        }
        if let candidate = pipeline.candidate {
            add(
                "Refused",
                "\(SizeText.bytes(candidate.size)), \(times.relative(candidate.refusedAt)): \(candidate.reason)")
            block.add(below: "'freshetctl diff \(pipeline.name) --candidate' shows it, 'accept' takes it")
        }
        return block.lines
    }

    /// Such as `comedy: the origin answered 404 Not Found, 3 attempts, first 5min ago`.
    private func text(of branch: BranchFailureStatus) -> String {
        let path = branch.path.joined(separator: "/")
        let attempts = Count.text(branch.attempts, "attempt")
        return "\(path): \(branch.message), \(attempts), first \(times.relative(branch.since))"
    }

    /// Such as `/usr/lib/notify kiosk: exited with status 1, 3 attempts for generation 7, first 5min ago, next in 12s`.
    static func text(of debt: PendingHook, _ times: Times) -> String {
        var text = debt.hook
        guard let since = debt.since else {
            return text + (debt.running ? " runs" : " waits for its turn") + " for generation \(debt.generation)"
        }
        if let error = debt.error { text += ": \(error)" }
        if debt.attempts > 0 { text += ", \(Count.text(debt.attempts, "attempt"))" }
        text += " for generation \(debt.generation), first failed \(times.relative(since))"
        if debt.running { return text + ", runs again" }
        return text + (debt.next.map { ", next \(times.relative($0))" } ?? ", waits for its turn")
    }

    /// Where further pages can be loaded: the keys, as `load-more` takes them, and how many pages there are.
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
        if let reason = waitingReason {
            text += pipeline.state == .waiting ? " for \(reason)" : ", waits for \(reason)"
        }
        if let since = pipeline.heldSince {
            // A run under way ends by itself, and a faulty pipeline is called failed.
            text += "\(pipeline.state == .held ? "" : ", held") since \(times.both(since))"
        }
        if let until = pipeline.waitingUntil { text += ", \(times.relative(until))" }
        // Of the network it has a line of its own.
        if let detail = pipeline.waitingDetail, detail != pipeline.path { text += ": \(detail)" }
        if hasBars, let bar = ProgressView.bar(pipeline) {
            text += " " + (columns == nil ? bar : LabelledText.word(bar))
        }
        if let amounts = ProgressView.amounts(pipeline) { text += ", \(amounts)" }
        if let freshness = pipeline.freshness { text += " (\(freshness.rawValue))" }
        return text
    }

    private var waitingReason: String? { pipeline.waitingFor.map(Self.waiting) }

    /// What is waited for, as it follows "waiting for".
    static func waiting(_ reason: WaitingReason) -> String {
        switch reason {
        case .network: "the network"
        case .quiet: "calm"
        case .backoff: "the next attempt"
        case .budget: "its budget"
        case .slot: "its turn"
        case .memory: "memory"
        case .sleep: "the machine to wake up"
        case .filesystem: "the file system"
        case .unknown: "something unknown"
        }
    }

    /// What keeps the copy from being replaced; nil: nothing.
    static func held(_ generation: GenerationStatus, _ times: Times) -> String? {
        let isBehind = generation.behind == true
        guard let since = generation.pinnedSince else {
            return isBehind ? "rolled back; the source has other content, and its next change replaces this" : nil
        }
        return "pinned since \(times.both(since))" + (isBehind ? "; the source has other content" : "")
    }

    /// Such as `12 of 500 requests in 24h`.
    static func budget(_ budget: BudgetStatus) -> String {
        "\(budget.used) of \(Count.text(budget.limit, "request")) in \(TimeText.duration(budget.periodUSec))"
    }

    /// Such as `12: unchanged in 85 ms, 3min 2s ago`.
    static func run(_ run: RunStatus, _ times: Times) -> String {
        let outcome = run.outcome?.rawValue ?? "under way"
        let duration = run.durationUSec.map { " in \(TimeText.duration($0))" } ?? ""
        return "\(run.number): \(outcome)\(duration), begun \(times.relative(run.started))"
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
    /// How a pipeline does.
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
