/// Somebody wants one further page of a set.
struct LoadMoreRequest: Hashable, Sendable {
    var place: [String]
    var requests: [UInt64]
    /// The operator's asking, as often as it was.
    var cause: RunCause
}

/// Further pages on demand: runs that ask for one page of one set, and put it to what is there.
///
/// Such a run is no check. It goes by what holds for every request - the network, a proof of it, `Retry-After`, the
/// budget, a slot, the deadline, a hold - and leaves alone what tells when the next check comes: freshness, back-off,
/// `min-interval`. A check that may start ends it. It is wanted now or not at all: what stands in its way refuses it,
/// but for a run that is under way, a slot and a proof that was not asked for yet.
extension RefreshMachine {
    /// At so many places further pages can be wanted at once.
    package static let mostMore = 64

    enum LoadMoreState: Hashable, Sendable {
        case nothingWanted
        /// A run is under way, or the machine is about to sleep.
        case waits
        case unproven
        case goes
    }

    /// No check is under way, and what plans the next one holds.
    var isBetweenChecks: Bool { run == nil || run?.isLoadMore == true }

    /// Why a further page is refused now; nil: it is not.
    package func loadMoreRefusal(at now: Instant) -> RefreshRefusal? {
        if let refusal = refusal(force: false, at: now) { return refusal }
        return settings.needsNetwork && !network.isUsable ? .network(nil) : nil
    }

    mutating func loadMore(_ request: UInt64?, at place: [String], _ now: Instant) {
        let requests = request.map { [$0] } ?? []
        if let refusal = loadMoreRefusal(at: now) { return answer(requests, .refused(refusal)) }
        // Whoever wants the page that is being loaded gets that one.
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
        guard more.count < Self.mostMore else { return answer(requests, .refused(.crowded(limit: Self.mostMore))) }
        let detail = (["load-more"] + (place.isEmpty ? [] : [BranchFailure.text(place)])).joined(separator: " ")
        more.append(
            LoadMoreRequest(
                place: place, requests: requests, cause: RunCause(SignalName.operation, first: now, detail: detail)))
    }

    func moreStanding(at now: Instant) -> LoadMoreState {
        if more.isEmpty { return .nothingWanted }
        if run != nil || goesToSleep { return .waits }
        return isProven(at: now) ? .goes : .unproven
    }

    /// What has come in the way meanwhile refuses all that waits.
    mutating func refuseMore(_ now: Instant) {
        guard !more.isEmpty, let refusal = loadMoreRefusal(at: now) else { return }
        answerMore(.refused(refusal))
    }

    mutating func answerMore(_ result: RefreshAnswer) {
        let wishes = more
        more = []
        for wish in wishes { answer(wish.requests, result) }
    }

    mutating func startLoadMore(slot: UInt64, _ now: Instant) {
        let wish = more.removeFirst()
        lastRunNumber += 1
        let order = RunOrder(
            run: lastRunNumber, reason: .loadMore(wish.place), causes: [wish.cause], started: now,
            epoch: network.state.epoch,
            // Those that the copy is made with: others make another one, of which no page is there.
            parameters: parameters?.tried ?? parameters?.values ?? ParameterValues(),
            allowance: budgetUse(at: now).map { max(1, $0.budget.limit - $0.used) })
        let deadline = settings.policy.deadline
        run = Run(
            order: order, wanted: Wanted(), requests: wish.requests, slot: slot, startBefore: lastStart,
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
            // By the network that there is now, if there is one.
            finishLoadMore(run, .superseded, answers: false, now)
            if let cause = run.order.causes.first, case .loadMore(let place) = run.order.reason {
                wantAgain(LoadMoreRequest(place: place, requests: run.requests, cause: cause), now)
            }
        case (_, .restart?):
            finishLoadMore(run, .superseded, now)
        case (.failed(let failure), nil):
            if let asked = failure.retryAfter, asked > .zero { leaveAlone(for: asked, now) }
            finishLoadMore(run, .failed, failure: failure, now)
        }
    }

    /// Wants first what was wanted before, and with it what was asked for the same place meanwhile.
    private mutating func wantAgain(_ wish: LoadMoreRequest, _ now: Instant) {
        if let refusal = loadMoreRefusal(at: now) { return answer(wish.requests, .refused(refusal)) }
        var wish = wish
        if let index = more.firstIndex(where: { $0.place == wish.place }) {
            let later = more.remove(at: index)
            wish.requests += later.requests
            wish.cause.count += later.cause.count
            wish.cause.last = later.cause.last
        }
        more.insert(wish, at: 0)
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
    /// It asks for one further page.
    var isLoadMore: Bool { order.reason.isLoadMore }
}
