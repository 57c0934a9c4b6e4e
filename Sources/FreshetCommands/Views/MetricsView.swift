import FreshetControl

/// The status of the daemon as metrics.
///
/// All series of a pipeline have the label `pipeline`. Times are seconds since 1970. A value that does not exist, such
/// as the time of a missing copy, has no sample.
struct MetricsView {
    var daemon: DaemonStatus
    var signals: [SignalStatus]
    var pipelines: [PipelineStatus]
    var counters: [PipelineCounters]

    func text(_ format: MetricText.Format) -> String {
        var text = MetricText(format)
        write(daemon: &text)
        write(signals: &text)
        write(pipelines: &text)
        write(runs: &text)
        return text.finished
    }

    private func write(daemon text: inout MetricText) {
        text.family("freshet_build", .info, "The daemon's version.") {
            $0.sample("_info", [("version", daemon.version)], 1)
        }
        text.family("freshet_start_time_seconds", .gauge, unit: "seconds", "When the daemon started.") {
            $0.sample(seconds: daemon.since)
        }
        text.family(
            "freshet_config_last_reload_successful", .gauge, "Whether the last reload of the configuration succeeded."
        ) {
            let isGood: Int64 = daemon.refusedReload == nil ? 1 : 0
            $0.sample("", [], daemon.configurationSince == nil ? nil : isGood)
        }
        text.family(
            "freshet_config_last_reload_success_timestamp_seconds", .gauge, unit: "seconds",
            "When the active configuration was read."
        ) { $0.sample(seconds: daemon.configurationSince) }
        text.family("freshet_network_reachable", .gauge, "Whether the network is reachable.") {
            $0.sample("", [], daemon.networkReachable ? 1 : 0)
        }
        text.family("freshet_pipelines", .gauge, "Pipelines, by state.") { family in
            let counts = daemon.pipelines
            for (state, count) in [
                ("idle", counts.idle), ("waiting", counts.waiting), ("loading", counts.loading),
                ("loaded", counts.loaded), ("failed", counts.failed), ("held", counts.held),
            ] { family.sample("", [("state", state)], count) }
        }
        text.family("freshet_hooks_failing", .gauge, "Hooks that have failed and are pending.") {
            $0.sample("", [], daemon.failingHooks ?? 0)
        }
        text.family("freshet_cache_bytes", .gauge, unit: "bytes", "All content of the cache.") {
            $0.sample("", [], daemon.cacheBytes)
        }
        text.family("freshet_cache_limit_bytes", .gauge, unit: "bytes", "The limit of the cache (cache.max-total).") {
            $0.sample("", [], daemon.cacheLimit)
        }
        text.family(
            "freshet_memory_bytes", .gauge, unit: "bytes", "Reserved for answers and programs that work on them."
        ) { $0.sample("", [], daemon.memoryBytes) }
        text.family(
            "freshet_memory_limit_bytes", .gauge, unit: "bytes", "The limit of the reserved memory (from memory.max)."
        ) { $0.sample("", [], daemon.memoryLimit) }
        text.family(
            "freshet_slow_jobs", .counter, "Jobs that used the event loop for 20 ms of processor time or more."
        ) { family in
            for slow in daemon.slowJobs ?? [] { family.sample("_total", [("job", slow.job)], slow.count) }
        }
        text.family(
            "freshet_slow_job_longest_seconds", .gauge, unit: "seconds", "The most processor time that such a job used."
        ) { family in
            for slow in daemon.slowJobs ?? [] { family.sample(seconds: slow.longestUSec, [("job", slow.job)]) }
        }
    }

    private func write(signals text: inout MetricText) {
        text.family("freshet_signals_fired", .counter, "How often each source of signals fired.") { family in
            for signal in signals { family.sample("_total", Self.labels(of: signal), signal.fired) }
        }
        text.family("freshet_signals_ignored", .counter, "How many events each source of signals ignored.") { family in
            for signal in signals { family.sample("_total", Self.labels(of: signal), signal.ignored) }
        }
    }

    /// The kind of a source of signals, and what it observes, as labels: `file /etc/hosts` is a signal and a path.
    private static func labels(of signal: SignalStatus) -> [(String, String)] {
        let parts = signal.name.split(separator: " ", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { return [("signal", signal.name)] }
        let label =
            switch parts[0] {
            case "file": "path"
            case "pipeline": "pipeline"
            case "dbus": "match"
            default: "target"
            }
        return [("signal", parts[0]), (label, parts[1])]
    }

    private func write(pipelines text: inout MetricText) {
        /// One sample of each pipeline that has the value.
        func each(
            _ name: String, unit: String? = nil, _ help: String, _ value: (PipelineStatus) -> Int64?
        ) {
            text.family(name, .gauge, unit: unit, help) { family in
                for pipeline in pipelines {
                    let labels = [("pipeline", pipeline.name)]
                    if unit == "seconds" {
                        family.sample(seconds: value(pipeline), labels)
                    } else {
                        family.sample("", labels, value(pipeline))
                    }
                }
            }
        }
        /// All states of a set, of which one is 1.
        func set<State: RawRepresentable & CaseIterable & Equatable>(
            _ name: String, _ label: String, _ help: String, _ value: (PipelineStatus) -> State?
        ) where State.RawValue == String {
            text.family(name, .gauge, help) { family in
                for pipeline in pipelines {
                    guard let value = value(pipeline) else { continue }
                    for state in State.allCases where state.rawValue != "unknown" {
                        family.sample(
                            "", [("pipeline", pipeline.name), (label, state.rawValue)], state == value ? 1 : 0)
                    }
                }
            }
        }
        set("freshet_pipeline_state", "state", "What a pipeline is doing.") { Optional($0.state) }
        set("freshet_pipeline_freshness", "freshness", "The freshness of its copy.") { $0.freshness }
        each("freshet_pipeline_last_check_time_seconds", unit: "seconds", "The last check that succeeded.") {
            $0.lastCheck
        }
        each("freshet_pipeline_committed_time_seconds", unit: "seconds", "When its copy was committed.") {
            $0.generation?.committedAt
        }
        each("freshet_pipeline_next_run_time_seconds", unit: "seconds", "When the next run is planned.") {
            $0.nextRun?.at
        }
        each("freshet_pipeline_expires_time_seconds", unit: "seconds", "When its copy is past its max-age.") {
            $0.expires
        }
        each(
            "freshet_pipeline_content_expires_time_seconds", unit: "seconds",
            "When its content expires by what the content itself states."
        ) { $0.contentExpires }
        each(
            "freshet_pipeline_failing_since_time_seconds", unit: "seconds", "When the first of its failed attempts was."
        ) {
            $0.failure?.since
        }
        each("freshet_pipeline_generation", "The number of the published generation.") {
            $0.generation?.number
        }
        each("freshet_pipeline_size_bytes", unit: "bytes", "The size of its copy.") { $0.generation?.size }
        each("freshet_pipeline_withdrawn", "Whether its copy is withdrawn.") { $0.withdrawn == nil ? 0 : 1 }
        each("freshet_pipeline_held", "Whether it is held by the operator.") { $0.heldSince == nil ? 0 : 1 }
        each("freshet_pipeline_pinned", "Whether its copy is pinned.") { $0.generation?.pinnedSince == nil ? 0 : 1 }
        each("freshet_pipeline_behind", "Whether its source has other content, which is not published.") {
            $0.generation?.behind == true ? 1 : 0
        }
        each("freshet_pipeline_candidate", "Whether content that a check rejected is kept.") {
            $0.candidate == nil ? 0 : 1
        }
        each("freshet_pipeline_branches_failing", "How many of its branches fail.") { $0.branches?.failed ?? 0 }
        each("freshet_pipeline_hooks_pending", "How many of its hooks have not succeeded yet for its copy.") {
            Int64($0.hooks?.count ?? 0)
        }
        each("freshet_pipeline_budget_limit", "How many requests its budget has.") { $0.budget?.limit }
        each("freshet_pipeline_budget_used", "How many of them were made in the last period.") { $0.budget?.used }
    }

    private func write(runs text: inout MetricText) {
        text.family("freshet_pipeline_runs", .counter, "Runs since the daemon started, by outcome.") { family in
            for counters in counters {
                for (outcome, count) in [
                    ("changed", counters.changed), ("unchanged", counters.unchanged), ("failed", counters.failed),
                    ("superseded", counters.superseded), ("cancelled", counters.cancelled),
                ] { family.sample("_total", [("pipeline", counters.name), ("outcome", outcome)], count) }
            }
        }
        text.family(
            "freshet_pipeline_run_duration_seconds", .summary, unit: "seconds", "How long runs took."
        ) { family in
            for counters in counters {
                family.sample("_count", [("pipeline", counters.name)], counters.runs)
                family.sample("_sum", seconds: counters.durationUSec, [("pipeline", counters.name)])
            }
        }
        text.family("freshet_pipeline_requests", .counter, "Requests that runs made.") { family in
            for counters in counters { family.sample("_total", [("pipeline", counters.name)], counters.requests) }
        }
        text.family(
            "freshet_pipeline_received_bytes", .counter, unit: "bytes", "Bytes of the answers' bodies."
        ) { family in
            for counters in counters { family.sample("_total", [("pipeline", counters.name)], counters.receivedBytes) }
        }
    }
}

/// Metric families as text: the samples of a family stand together, below its type and help.
struct MetricText {
    enum Format {
        /// OpenMetrics 1.0 (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md).
        case openMetrics
        /// Version 0.0.4 of Prometheus' own (https://prometheus.io/docs/instrumenting/exposition_formats/), which is
        /// what the textfile collector of node_exporter reads: it has no units, no type `info`, and no last line.
        case prometheus
    }

    enum Kind: String {
        case gauge, counter, info, summary
    }

    private let format: Format
    private var text = ""

    init(_ format: Format) { self.format = format }

    mutating func family(
        _ name: String, _ kind: Kind, unit: String? = nil, _ help: String, _ samples: (inout Samples) -> Void
    ) {
        var family = Samples(name: name)
        samples(&family)
        // A family without samples is omitted.
        guard !family.text.isEmpty else { return }
        switch format {
        case .openMetrics:
            text += "# TYPE \(name) \(kind.rawValue)\n"
            if let unit { text += "# UNIT \(name) \(unit)\n" }
            text += "# HELP \(name) \(Self.escaped(help))\n"
        case .prometheus:
            // In this format, the family of a counter or info has the name of its samples.
            let suffix = kind == .counter ? "_total" : kind == .info ? "_info" : ""
            text += "# HELP \(name)\(suffix) \(help)\n"
            text += "# TYPE \(name)\(suffix) \(kind == .info ? "gauge" : kind.rawValue)\n"
        }
        text += family.text
    }

    var finished: String { format == .openMetrics ? text + "# EOF\n" : text }

    struct Samples {
        let name: String
        fileprivate var text = ""

        init(name: String) { self.name = name }

        /// - Parameter value: nil for no sample.
        mutating func sample(_ suffix: String, _ labels: [(String, String)], _ value: Int64?) {
            guard let value else { return }
            write(suffix, labels, String(value))
        }

        mutating func sample(_ suffix: String, _ labels: [(String, String)], _ value: Int) {
            write(suffix, labels, String(value))
        }

        /// - Parameter microseconds: written in seconds, without rounding.
        mutating func sample(
            _ suffix: String = "", seconds microseconds: Int64?, _ labels: [(String, String)] = []
        ) {
            guard let microseconds else { return }
            let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
            let digits = String(rest)
            let fraction = String(repeating: "0", count: 6 - digits.count) + digits
            write(suffix, labels, "\(microseconds < 0 ? "-" : "")\(whole).\(fraction)")
        }

        private mutating func write(_ suffix: String, _ labels: [(String, String)], _ value: String) {
            let set = labels.map { "\($0)=\"\(MetricText.escaped($1))\"" }.joined(separator: ",")
            text += name + suffix + (set.isEmpty ? "" : "{\(set)}") + " " + value + "\n"
        }
    }

    fileprivate static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").replacing("\"", with: "\\\"")
    }
}
