import FreshetModel

/// A request for one further page of a set.
struct LoadMoreRequest: Hashable, Sendable {
    var place: [String]
    var requests: [UInt64]
    /// The requests of the operator, counted.
    var cause: RunCause
}

/// Further pages on demand: a run that loads one page of one set and adds it to the copy.
///
/// Such a run is not a check. The rules for every request apply - the network, a proof of it, `Retry-After`, the
/// budget, a permit, the deadline, a hold - but it does not affect when the next check comes: freshness, backoff,
/// `min-interval`. A check that may start ends the run. A further page is loaded now or not at all: any obstacle
/// refuses the request, except for a run that is in progress, a permit, and a proof that was not requested yet.
extension RefreshMachine {
    /// The most sets for which further pages can be requested at the same time.
    package static let loadMoreLimit = 64

    enum LoadMoreState: Hashable, Sendable {
        case nothingRequested
        /// A run is in progress, or the machine is about to sleep.
        case waits
        case unproven
        case ready
    }

    /// Whether no check is in progress, so that the plan for the next one holds.
    var isBetweenChecks: Bool { run == nil || run?.isLoadMore == true }

    /// Why a further page is refused now; nil: it is allowed.
    package func loadMoreRefusal(at now: Instant) -> RefreshRefusal? {
        if let refusal = refusal(force: false, at: now) { return refusal }
        return settings.needsNetwork && !network.isUsable ? .network(nil) : nil
    }

    mutating func loadMore(_ request: UInt64?, at place: [String], _ now: Instant) {
        let requests = request.map { [$0] } ?? []
        if let refusal = loadMoreRefusal(at: now) { return answer(requests, .refused(refusal)) }
        // A request for the page that is being loaded gets the result of that run.
        if run?.order.reason == .loadMore(place), run?.interruption == nil {
            run?.requests += requests
            return
        }
        proofMayHaveChanged(at: now)
        if let index = more.firstIndex(where: { $0.place == place }) {
            more[index].requests += requests
            more[index].cause.count += 1
            more[index].cause.last = now
            return
        }
        guard more.count < Self.loadMoreLimit else {
            return answer(requests, .refused(.tooManyRequests(limit: Self.loadMoreLimit)))
        }
        let detail = (["load-more"] + (place.isEmpty ? [] : [BranchFailure.text(place)])).joined(separator: " ")
        more.append(
            LoadMoreRequest(
                place: place, requests: requests, cause: RunCause(SignalName.operation, first: now, detail: detail)))
    }

    func loadMoreDecision(at now: Instant) -> LoadMoreState {
        if more.isEmpty { return .nothingRequested }
        if run != nil || goesToSleep { return .waits }
        return isProven(at: now) ? .ready : .unproven
    }

    /// Refuses all waiting requests if there is an obstacle by now.
    mutating func refuseLoadMore(_ now: Instant) {
        guard !more.isEmpty, let refusal = loadMoreRefusal(at: now) else { return }
        answerMore(.refused(refusal))
    }

    mutating func answerMore(_ result: RefreshAnswer) {
        let waiting = more
        more = []
        for request in waiting { answer(request.requests, result) }
    }

    mutating func startLoadMore(permit: UInt64, _ now: Instant) {
        let request = more.removeFirst()
        lastRunNumber += 1
        let order = RunOrder(
            run: lastRunNumber, reason: .loadMore(request.place), causes: [request.cause], started: now,
            epoch: network.state.epoch,
            // The values of the copy: other values make another copy, which has no pages yet.
            parameters: parameters?.tried ?? parameters?.values ?? ParameterValues(),
            allowance: budgetUse(at: now).map { max(1, $0.budget.limit - $0.used) })
        let deadline = settings.policy.deadline
        run = Run(
            order: order, pendingRequest: PendingRequest(), requests: request.requests, permit: permit,
            startBefore: lastStart,
            path: network.state.reachable ? network.state.path : nil,
            deadline: deadline > .zero ? now.advanced(by: deadline) : nil)
        spend(1, now)
        actions.append(.start(order))
        report(.runStarted(order))
    }

    mutating func loadMoreEnded(_ run: Run, _ result: RunResult, _ now: Instant) {
        switch (result, run.interruption) {
        case (_, .stopped?), (.cancelled, nil):
            finishLoadMore(run, .cancelled, now)
        case (_, .configuration?), (_, .parameters?):
            finishLoadMore(run, .superseded, now)
        case (.succeeded(let changed, let generation, _, _, _), _):
            finishLoadMore(run, changed ? .changed : .unchanged, generation: generation, now)
        case (_, .deadline?):
            let limit = settings.policy.deadline
            finishLoadMore(
                run, .failed,
                failure: RunFailure(.deadline, "the page took longer than the deadline of \(limit)"), now)
        case (_, .networkLost?), (_, .pathChanged?):
            // The page is requested again by the current network, if there is one.
            finishLoadMore(run, .superseded, answers: false, now)
            if let cause = run.order.causes.first, case .loadMore(let place) = run.order.reason {
                requestAgain(LoadMoreRequest(place: place, requests: run.requests, cause: cause), now)
            }
        case (_, .restart?):
            finishLoadMore(run, .superseded, now)
        case (.failed(let failure), nil):
            if let requested = failure.retryAfter, requested > .zero { backoff(for: requested, now) }
            finishLoadMore(run, .failed, failure: failure, now)
        }
    }

    /// Puts a request first again, merged with a later request for the same place.
    private mutating func requestAgain(_ request: LoadMoreRequest, _ now: Instant) {
        if let refusal = loadMoreRefusal(at: now) { return answer(request.requests, .refused(refusal)) }
        var request = request
        if let index = more.firstIndex(where: { $0.place == request.place }) {
            let later = more.remove(at: index)
            request.requests += later.requests
            request.cause.count += later.cause.count
            request.cause.last = later.cause.last
        }
        more.insert(request, at: 0)
    }

    private mutating func finishLoadMore(
        _ run: Run, _ outcome: RunOutcome, generation: UInt64? = nil, failure: RunFailure? = nil, answers: Bool = true,
        _ now: Instant
    ) {
        let summary = RunSummary(
            run: run.order.run, reason: run.order.reason, causes: run.order.causes, started: run.order.started,
            ended: now, outcome: outcome, failure: failure, counts: false, generation: generation)
        lastRun = summary
        report(.runEnded(summary, next: nextRun(at: now)))
        if answers { answer(run.requests, outcome == .cancelled ? .stopped : .ended(summary)) }
    }
}

extension RefreshMachine.Run {
    /// Whether the run loads one further page.
    var isLoadMore: Bool { order.reason.isLoadMore }
}
