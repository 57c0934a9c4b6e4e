import FreshetControl
import FreshetRender

/// The outcome of a request for a further page, in one line.
enum LoadMoreView {
    /// - Parameter waited: whether the request waits for the outcome.
    static func text(_ result: LoadMoreResult, waited: Bool) -> String {
        let place = ([result.name] + result.path).joined(separator: " ")
        return DisplayText.harmless("\(place): \(outcome(result, waited: waited))")
    }

    private static func outcome(_ result: LoadMoreResult, waited: Bool) -> String {
        let duration = RefreshView.duration(result.durationUSec)
        switch result.outcome {
        case .changed:
            return "changed\(RefreshView.copy(result.generation, result.size))\(duration)\(pages(of: result))"
        case .unchanged: return "unchanged\(duration)\(pages(of: result))"
        case .failed: return "failed: \(result.failure ?? "the daemon gave no reason")"
        case .superseded: return "superseded: a run of the whole pipeline started, which resets the loaded pages"
        case .cancelled, .unknown: return result.outcome?.rawValue ?? ""
        case nil: return waited ? "the daemon gave no outcome" : "a further page is requested"
        }
    }

    private static func pages(of result: LoadMoreResult) -> String {
        guard let pages = result.pages else { return "" }
        return "; \(Count.text(pages, "page"))"
            + (result.hasMore == true ? ", more exist" : ", nothing more to load")
    }

    static func succeeded(_ result: LoadMoreResult, waited: Bool) -> Bool {
        switch result.outcome {
        case .changed, .unchanged: true
        case .failed, .superseded, .cancelled, .unknown: false
        case nil: !waited
        }
    }
}
