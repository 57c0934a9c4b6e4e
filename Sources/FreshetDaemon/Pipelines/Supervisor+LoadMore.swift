import FreshetControl
import FreshetModel
import FreshetPipelines

/// Further pages that a client requests.
extension Supervisor {
    func loadMore(_ name: String, at place: [String], wait: Bool) async throws(ControlError) -> LoadMoreResult {
        let runner = try hosted(name).runner
        if let generation = runner.status.generation, generation.isBehind || generation.pinnedSince != nil {
            throw .cannotLoadMore(
                name: name, reason: "its copy was rolled back or is pinned, and further pages would not belong to it")
        }
        if runner.status.withdrawn != nil {
            throw .cannotLoadMore(
                name: name, reason: "its copy is withdrawn; run 'freshetctl refresh \(name)' first")
        }
        if runner.status.heldSince != nil { throw .cannotLoadMore(name: name, reason: Self.held(name)) }
        let known: [String]
        let answer: RefreshAnswer
        do throws(LoadMoreError) {
            // A refused request is not recorded as a signal, because no pipeline received it.
            try runner.mayLoadMore(at: place)
            registry.recordOccurrence(
                SignalName.operation, (["load-more"] + (readers.isPublic(name) ? place : [])).joined(separator: " "),
                pipeline: name)
            guard wait else { return LoadMoreResult(name: name, path: try runner.requestMore(at: place)) }
            (known, answer) = try await runner.loadMore(at: place)
        } catch {
            throw ControlError(error, of: name, at: place)
        }
        switch answer {
        case .stopped: throw .busy("'\(name)' was stopped before the page was loaded")
        case .refused(let refusal): throw .tryLater(TryLaterHint(refusal))
        case .ended(let summary):
            let status = runner.status
            let pages = runner.pages(at: known)
            return LoadMoreResult(
                name: name, path: known, outcome: FreshetControl.RunOutcome(rawValue: summary.outcome.rawValue),
                run: Int64(clamping: summary.run), generation: status.generation.map { Int64(clamping: $0.number) },
                size: status.generation.map { Int64(clamping: $0.size) },
                durationUSec: summary.duration.microseconds, failure: summary.failure?.message,
                pages: pages.map { Int64($0.count) }, hasMore: pages?.hasMore)
        }
    }
}

extension ControlError {
    /// Why no further page was loaded.
    fileprivate init(_ error: LoadMoreError, of name: String, at place: [String]) {
        switch error {
        case .noPages:
            self = .cannotLoadMore(name: name, reason: "it has no 'pages'; each run loads everything")
        case .notOnDemand:
            self = .cannotLoadMore(name: name, reason: "it loads all pages by itself ('pages.load' is not a number)")
        case .notLoaded: self = .cannotLoadMore(name: name, reason: "it has no copy yet")
        case .nothingMore: self = .nothingMore(name: name, path: place)
        case .unknownPlace(let known):
            let keys = known.map { $0.joined(separator: " ") }
            self = .noSuchBranch(
                name: name, path: place,
                suggestion: NameSuggestion.closest(to: place.joined(separator: " "), among: keys))
        case .severalPlaces(let report): self = .severalBranches(name: name, more: MorePages(report))
        case .refused(let refusal): self = .tryLater(TryLaterHint(refusal))
        }
    }
}
