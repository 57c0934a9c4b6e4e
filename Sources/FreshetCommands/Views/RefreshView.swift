import FreshetControl
import FreshetRender

/// The outcome of a refresh, in one line.
enum RefreshView {
    /// - Parameter waited: whether the request waits for the outcome.
    static func text(_ result: RefreshResult, waited: Bool, _ times: Times) -> String {
        DisplayText.harmless("\(result.name): \(outcome(result, waited: waited, times))")
    }

    /// The reason for which a run waits, in one line.
    static func text(_ hint: WaitingHint) -> String {
        DisplayText.harmless("\(hint.name): waiting: \(hint.reason)")
    }

    private static func outcome(_ result: RefreshResult, waited: Bool, _ times: Times) -> String {
        if let hint = result.tryLater { return "not started: \(times.retryHint(hint)); --force ignores it" }
        let duration = duration(result.durationUSec)
        switch result.outcome {
        case .changed: return "changed\(copy(result.generation, result.size))\(duration)"
        case .unchanged:
            let behind = result.behind == true ? "; the source has other content, which is not published" : ""
            return "unchanged\(duration)\(behind)"
        case .failed: return "failed: \(result.failure ?? "the daemon gave no reason")"
        case .superseded, .cancelled, .unknown:
            let reason = result.failure.map { ": \($0)" } ?? ""
            return "\(result.outcome?.rawValue ?? "")\(reason)"
        case nil: return waited ? "the daemon gave no outcome" : "refresh requested"
        }
    }

    /// Such as `12 pipelines in 3.1 s: 2 changed, 9 unchanged, 1 failed`.
    static func total(_ results: [RefreshResult], in time: Duration) -> String {
        let words = results.map { $0.tryLater == nil ? $0.outcome?.rawValue ?? "without an outcome" : "not started" }
        let order = RunOutcome.allCases.map(\.rawValue) + ["not started", "without an outcome"]
        let counts = order.compactMap { word in
            let count = words.count { $0 == word }
            return count == 0 ? nil : "\(count) \(word)"
        }
        let (seconds, attoseconds) = time.components
        let span = TimeText.duration(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
        let all = Count.text(results.count, "pipeline") + " in \(span)"
        return counts.isEmpty ? all : "\(all): \(counts.joined(separator: ", "))"
    }

    /// Such as `, generation 3, 1.2 KiB`: the new copy, after the outcome.
    static func copy(_ generation: Int64?, _ size: Int64?) -> String {
        (generation.map { ", generation \($0)" } ?? "") + (size.map { ", \(SizeText.bytes($0))" } ?? "")
    }

    /// Such as ` in 85 ms`.
    static func duration(_ microseconds: Int64?) -> String {
        microseconds.map { " in \(TimeText.duration($0))" } ?? ""
    }

    /// The exit status for all results: a failure has precedence over a request that was not started.
    static func status(_ results: [RefreshResult], waited: Bool) -> ExitStatus {
        let hasFailed = results.contains { result in
            guard result.tryLater == nil else { return false }
            switch result.outcome {
            case .changed, .unchanged: return false
            case .failed, .superseded, .cancelled, .unknown: return true
            case nil: return waited
            }
        }
        if hasFailed { return .failure }
        return results.contains { $0.tryLater != nil } ? .tryLater : .success
    }
}
