import FreshetModel

/// A request for one further page of a set.
struct LoadMoreRequest: Hashable, Sendable {
    var place: [String]
    var requests: [UInt64]
    /// The requests of the operator, counted.
    var cause: RunCause
}

/// Decides about further pages: which one is loaded next, and what the end of its run means. At most one request for each
/// set waits.
///
/// A run for a further page is not a check. The rules for every request apply - the network, a proof of it,
/// `Retry-After`, the budget, a permit, the deadline, a hold - but it does not affect when the next check comes:
/// freshness, backoff, `min-interval`. A check that may start ends the run. A further page is loaded now or not at all:
/// any obstacle refuses the request, except for a run that is in progress, a permit, and a proof that was not requested
/// yet.
struct LoadMoreMachine: Hashable, Sendable {
    /// The most sets for which further pages can be requested at the same time.
    static let limit = 64

    /// What follows a request.
    enum Reply: Hashable, Sendable {
        /// The run in progress loads this page, and its end answers the request.
        case joinsRun
        case waits
        case refused(RefreshRefusal)
    }

    private(set) var waiting: [LoadMoreRequest] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// A further page is requested.
    ///
    /// - Parameters:
    ///   - requests: the numbers that await an answer.
    ///   - refusal: why no further page is loaded now; nil: it is allowed.
    ///   - run: the run in progress.
    mutating func requested(
        _ requests: [UInt64], at place: [String], refusal: RefreshRefusal?, during run: RunInProgress?,
        _ now: BootInstant
    ) -> Reply {
        if let refusal { return .refused(refusal) }
        if let run, run.interruption == nil, run.order.reason == .loadMore(place) { return .joinsRun }
        if let index = waiting.firstIndex(where: { $0.place == place }) {
            waiting[index].requests += requests
            waiting[index].cause.count += 1
            waiting[index].cause.last = now
            return .waits
        }
        guard waiting.count < Self.limit else { return .refused(.tooManyRequests(limit: Self.limit)) }
        let detail = (["load-more"] + (place.isEmpty ? [] : [BranchFailure.text(place)])).joined(separator: " ")
        waiting.append(
            LoadMoreRequest(
                place: place, requests: requests, cause: RunCause(SignalName.operation, first: now, detail: detail)))
        return .waits
    }

    /// Whether the first page may be loaded now.
    ///
    /// - Parameters:
    ///   - isFree: no run is in progress, and the host is awake. Nothing is requested while the page waits for that.
    ///   - isProven: whether there is a proof of the network, or none is needed.
    func decision(isFree: Bool, isProven: @autoclosure () -> Bool) -> RefreshMachine.RunDecision {
        guard let request = waiting.first, isFree else { return .nothingRequested }
        return isProven() ? .ready(.loadMore(request.place)) : .unproven
    }

    /// Takes the first request, because its run starts; nil: there is none.
    mutating func takeFirst() -> LoadMoreRequest? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// Takes all requests; returns the numbers that await an answer.
    mutating func takeAll() -> [UInt64] {
        defer { waiting = [] }
        return waiting.flatMap(\.requests)
    }

    /// The run for a page has ended.
    ///
    /// | end | the requests |
    /// | --- | --- |
    /// | it succeeded, failed or was late | are answered with the result |
    /// | a check replaces all pages, or they belong to another configuration | are answered: superseded |
    /// | the network was lost or its path changed | wait for another run, or are refused |
    /// | the pipeline is stopped, or the service | are answered: stopped |
    ///
    /// - Parameters:
    ///   - refusal: why no further page is loaded now; nil: it is allowed.
    ///   - deadline: the longest duration of a run.
    mutating func ended(
        _ run: RunInProgress, _ end: RunEnd, refusal: RefreshRefusal?, deadline: Duration
    ) -> RunConclusion {
        switch end {
        case .stopped, .cancelled: return RunConclusion(.cancelled, counts: false, .stopped)
        case .succeeded(let success):
            return RunConclusion(success.outcome, generation: success.generation, counts: false, .answered)
        case .failed(let failure): return RunConclusion(.failed, failure: failure, counts: false, .answered)
        case .late:
            let failure = RunFailure(.deadline, "the page took longer than the deadline of \(deadline)")
            return RunConclusion(.failed, failure: failure, counts: false, .answered)
        case .superseded(by: .networkLost), .superseded(by: .pathChanged):
            if let refusal { return RunConclusion(.superseded, counts: false, .refused(refusal)) }
            putBack(run)
            return RunConclusion(.superseded, counts: false, .kept)
        case .superseded: return RunConclusion(.superseded, counts: false, .answered)
        }
    }

    /// Puts the request of a run first again, merged with a later request for the same place.
    private mutating func putBack(_ run: RunInProgress) {
        // safe: each run for a page has one cause.
        guard case .loadMore(let place) = run.order.reason, let cause = run.order.causes.first else { return }
        var request = LoadMoreRequest(place: place, requests: run.requests, cause: cause)
        if let index = waiting.firstIndex(where: { $0.place == place }) {
            let later = waiting.remove(at: index)
            request.requests += later.requests
            request.cause.count += later.cause.count
            request.cause.last = later.cause.last
        }
        waiting.insert(request, at: 0)
    }
}

extension RunConditions {
    /// Why a further page is refused now; nil: it is allowed.
    func loadMoreRefusal(_ settings: RefreshSettings, at now: Instant) -> RefreshRefusal? {
        refusal(force: false, settings, at: now) ?? (isOffline(settings) ? .network(nil) : nil)
    }
}
