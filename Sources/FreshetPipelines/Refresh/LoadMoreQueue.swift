/// A request for one further page of a set.
struct LoadMoreRequest: Hashable, Sendable {
    var place: [String]
    var requests: [UInt64]
    /// The requests of the operator, counted.
    var cause: RunCause
}

/// Requests for further pages that have not started yet, at most one for each set.
///
/// A run for a further page is not a check. The rules for every request apply - the network, a proof of it,
/// `Retry-After`, the budget, a permit, the deadline, a hold - but it does not affect when the next check comes:
/// freshness, backoff, `min-interval`. A check that may start ends the run. A further page is loaded now or not at all:
/// any obstacle refuses the request, except for a run that is in progress, a permit, and a proof that was not requested
/// yet.
struct LoadMoreQueue: Hashable, Sendable {
    /// The most sets for which further pages can be requested at the same time.
    static let limit = 64

    private(set) var waiting: [LoadMoreRequest] = []

    var isEmpty: Bool { waiting.isEmpty }

    /// Adds requests for a place; returns whether there was space for them.
    mutating func add(_ requests: [UInt64], at place: [String], _ now: ContinuousClock.Instant) -> Bool {
        if let index = waiting.firstIndex(where: { $0.place == place }) {
            waiting[index].requests += requests
            waiting[index].cause.count += 1
            waiting[index].cause.last = now
            return true
        }
        guard waiting.count < Self.limit else { return false }
        let detail = (["load-more"] + (place.isEmpty ? [] : [BranchFailure.text(place)])).joined(separator: " ")
        waiting.append(
            LoadMoreRequest(
                place: place, requests: requests, cause: RunCause(SignalName.operation, first: now, detail: detail)))
        return true
    }

    /// Puts a request first again, merged with a later request for the same place.
    mutating func putBack(_ request: LoadMoreRequest) {
        var request = request
        if let index = waiting.firstIndex(where: { $0.place == request.place }) {
            let later = waiting.remove(at: index)
            request.requests += later.requests
            request.cause.count += later.cause.count
            request.cause.last = later.cause.last
        }
        waiting.insert(request, at: 0)
    }

    /// Takes the first request; nil: there is none.
    mutating func takeFirst() -> LoadMoreRequest? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// Takes all requests; returns the numbers that await an answer.
    mutating func takeAll() -> [UInt64] {
        defer { waiting = [] }
        return waiting.flatMap(\.requests)
    }
}
