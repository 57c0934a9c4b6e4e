import FreshetControl
import FreshetRender

/// What came of a refresh, in one line.
enum RefreshView {
    /// - Parameter waited: whether the outcome was awaited.
    static func text(_ result: RefreshResult, waited: Bool, _ times: Times) -> String {
        DisplayText.harmless("\(result.name): \(outcome(result, waited: waited, times))")
    }

    /// What a run waits for, in one line.
    static func text(_ hint: WaitingHint) -> String {
        DisplayText.harmless("\(hint.name): waits: \(hint.reason)")
    }

    private static func outcome(_ result: RefreshResult, waited: Bool, _ times: Times) -> String {
        if let hint = result.tryLater { return "not started: \(times.patience(hint)); --force passes it" }
        let duration = duration(result.durationUSec)
        switch result.outcome {
        case .changed: return "changed\(copy(result.generation, result.size))\(duration)"
        case .unchanged:
            let held = result.behind == true ? "; the source has other content, which is held back" : ""
            return "unchanged\(duration)\(held)"
        case .failed: return "failed: \(result.failure ?? "the daemon does not say why")"
        case .superseded, .cancelled, .unknown:
            let reason = result.failure.map { ": \($0)" } ?? ""
            return "\(result.outcome?.rawValue ?? "")\(reason)"
        case nil: return waited ? "the daemon does not say what came of it" : "refresh requested"
        }
    }

    /// Such as `, generation 3, 1.2 KiB`: what a run has made, after the word for it.
    static func copy(_ generation: Int64?, _ size: Int64?) -> String {
        (generation.map { ", generation \($0)" } ?? "") + (size.map { ", \(SizeText.bytes($0))" } ?? "")
    }

    /// Such as ` in 85 ms`.
    static func duration(_ microseconds: Int64?) -> String {
        microseconds.map { " in \(TimeText.duration($0))" } ?? ""
    }

    /// The exit status for all results: a failure outweighs patience.
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
