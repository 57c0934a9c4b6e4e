import FreshetControl
import FreshetModel
import FreshetPipelines

/// What ran, and what would have run: the JSON of `freshetd --replay --json`.
package struct ReplayResult: Encodable, Hashable, Sendable {
    /// A run that ended within the window.
    package struct Run: Encodable, Hashable, Sendable {
        /// Microseconds since 1970.
        package var started: Int64
        package var durationUSec: Int64
        /// As in `RunOutcome`.
        package var outcome: String
        package var requests: Int64
        /// Such as `network (2), timer`.
        package var causes: String
    }

    /// Sums over runs.
    package struct Totals: Encodable, Hashable, Sendable {
        package var runs: Int64 = 0
        package var requests: Int64 = 0
        package var changed: Int64 = 0
        package var failed: Int64 = 0

        static func + (one: Totals, other: Totals) -> Totals {
            Totals(
                runs: one.runs + other.runs, requests: one.requests + other.requests,
                changed: one.changed + other.changed, failed: one.failed + other.failed)
        }
    }

    /// The runs of one side: recorded or replayed.
    package struct Side: Encodable, Hashable, Sendable {
        package var totals: Totals
        package var runs: [Run]

        init(_ runs: [Run]) {
            self.runs = runs
            totals = Totals(
                runs: Int64(runs.count), requests: runs.reduce(0) { $0 + $1.requests },
                changed: Int64(runs.count { $0.outcome == "changed" }),
                failed: Int64(runs.count { $0.outcome == "failed" }))
        }
    }

    package struct Pipeline: Encodable, Hashable, Sendable {
        package var name: String
        package var recorded: Side
        package var replayed: Side
    }

    /// The window, in microseconds since 1970.
    package var since: Int64
    package var until: Int64
    package var recorded: Totals
    package var replayed: Totals
    /// By name.
    package var pipelines: [Pipeline]
    /// What the reader has to know about the comparison, as sentences.
    package var notes: [String]

    init(_ history: RecordedHistory, _ replay: Replay, _ ended: [ReplaySession.EndedRun]) {
        since = history.since
        until = history.until
        var replayedRuns: [String: [Run]] = [:]
        // The end of the window cancels the runs in progress; a recording does not have them either.
        for run in ended where run.summary.outcome != .cancelled {
            replayedRuns[run.pipeline, default: []].append(Run(run))
        }
        let names = Set(replay.pipelines.map(\.name)).union(history.recording.pipelines.map(\.name)).union(
            history.runs.keys)
        pipelines = names.sorted().map { name in
            Pipeline(
                name: name, recorded: Side(history.window(of: name).map(Run.init)),
                replayed: Side((replayedRuns[name] ?? []).sorted { $0.started < $1.started }))
        }
        recorded = pipelines.reduce(Totals()) { $0 + $1.recorded.totals }
        replayed = pipelines.reduce(Totals()) { $0 + $1.replayed.totals }
        notes = Self.notes(history, replay)
    }

    private static func notes(_ history: RecordedHistory, _ replay: Replay) -> [String] {
        var notes: [String] = []
        let configured = Set(replay.pipelines.map(\.name))
        let recorded = Set(history.recording.pipelines.map(\.name)).union(history.runs.keys)
        for name in recorded.subtracting(configured).sorted() {
            notes.append("\(name) is not in this configuration, so it does not run.")
        }
        for name in configured.sorted() where (history.runs[name] ?? []).isEmpty {
            notes.append("\(name) has no recorded run: each run takes 200 ms and succeeds with one request.")
        }
        var missing: Set<String> = []
        for pipeline in replay.pipelines {
            for row in pipeline.rows(in: history) where !history.rows.contains(row) {
                let words = row.split(separator: " ", maxSplits: 1)
                let isCommit = words.count == 2 && words[0] == SignalName.pipeline
                if !isCommit || !configured.contains(String(words[1])) { missing.insert(row) }
            }
        }
        for row in missing.sorted() {
            notes.append("The recording has no signal '\(row)': no pipeline subscribed to it then.")
        }
        let gaps = history.pauses.count { !$0.isSleep }
        if gaps > 0 {
            notes.append(
                gaps == 1
                    ? "Nothing is known of one part of the time; no timer expires in it."
                    : "Nothing is known of \(gaps) parts of the time; no timer expires in them.")
        }
        return notes
    }
}

extension ReplayResult.Run {
    fileprivate init(_ run: RunStatus) {
        self.init(
            started: run.started, durationUSec: run.durationUSec ?? 0, outcome: run.outcome?.rawValue ?? "unknown",
            requests: run.requests ?? 1,
            causes: run.causes.map { $0.count == 1 ? $0.signal : "\($0.signal) (\($0.count))" }.joined(separator: ", "))
    }

    fileprivate init(_ run: ReplaySession.EndedRun) {
        self.init(
            started: run.started, durationUSec: run.summary.duration.microseconds,
            outcome: run.summary.outcome.rawValue, requests: Int64(run.requests), causes: run.summary.causes.summary)
    }
}
