internal import FreshetSignals

/// Evaluates the fan-out of a stage: one branch for each item of its list.
extension StageEvaluator {
    /// The outcome of a branch.
    enum Outcome: Sendable {
        case value([UInt8])
        case previous([UInt8], RunFailure)
        case failed(RunFailure)
        /// The branch has not ended yet; the value that is shown until then.
        case awaited([UInt8]?)
    }

    /// The branches' values in the order of their items, as one JSON text.
    ///
    /// - Parameter list: the request for the list; nil: the list came from no origin.
    func branches(
        _ items: [BranchItem], of each: EachDefinition, from list: HTTPSource?, in scope: EvaluationContext
    ) async throws(FetchError) -> [UInt8] {
        progress.expect(branches: items.count)
        scope.reading?.expect(branches: items.count)
        let semaphore = AsyncSemaphore(limit: each.concurrency)
        let budget = ByteBudget(definition.check.maxBytes, of: "the branches together have")
        let stored = parts.branches(items.map(\.key), below: scope.path)
        let placeholders = each.stage.source.placeholders
        let branches = items.enumerated().map { number, item in
            Emitter<Outcome, FetchError>.once { () throws(FetchError) in
                try await semaphore.pass { () throws(FetchError) in
                    var inner = scope.entering(item, of: each, from: list)
                    inner.branch = (stored, number, placeholders)
                    let outcome = try await self.outcome(of: each, in: inner)
                    try budget.take(outcome.json?.count ?? 0)
                    progress.endBranch()
                    scope.reading?.endBranch()
                    return outcome
                }
            }
        }
        var outcomes: [Outcome]?
        if each.publish == .progressive, let publish, scope.path.isEmpty {
            let awaited = await interimOutcomes(for: items, in: scope)
            outcomes = try await latest(of: branches, until: awaited) { row in
                guard await publish(join(row, each.onError)) else { return }
                // If the run fails, the next run shows the values that were published until their branches end.
                await parts.keep(awaiting: Set(zip(items, row).lazy.filter { !$1.isIn }.map(\.0.key)))
            }
        } else {
            for try await row in accumulateLatestMany(branches) { outcomes = row }
        }
        // A cancelled branch ends without an outcome.
        guard let outcomes, outcomes.count == items.count, outcomes.allSatisfy(\.isIn), !Task.isCancelled
        else { throw .cancelled }
        let failures = zip(items, outcomes).compactMap { item, outcome in
            outcome.failure.map {
                BranchFailure(path: scope.path + [item.key], failure: $0, isAccepted: each.onError.accepts($0))
            }
        }
        if let first = failures.first, failures.count == items.count {
            if place != nil { throw .failed(.noPart) }
            // No branch has a new value: the run fails, whatever the list would look like.
            throw .failed(first.failure.ofAll(items.count, first: first.path))
        }
        progress.record(failures)
        return join(outcomes, each.onError)
    }

    private func outcome(of each: EachDefinition, in scope: EvaluationContext) async throws(FetchError) -> Outcome {
        do throws(FetchError) {
            let value = try await value(of: each.stage, in: scope, onError: each.onError)
            return value.staleness.map { .previous(value.json, $0) } ?? .value(value.json)
        } catch {
            guard case .failed(let failure) = error, failure.isOfOneBranch, each.onError != .fail,
                // In a run for a further page, the other branches keep their state: no value, or the earlier one.
                place == nil || failure.kind == .absent
            else {
                throw error.of("branch '\(BranchFailure.text(scope.path))'")
            }
            return .failed(failure)
        }
    }

    private func join(_ outcomes: [Outcome], _ onError: EachDefinition.OnError) -> [UInt8] {
        var list = Array("[".utf8)
        for outcome in outcomes {
            guard let json = outcome.json ?? (onError == .omit ? nil : Array("null".utf8)) else { continue }
            if list.count > 1 { list.append(UInt8(ascii: ",")) }
            list += json
        }
        return list + Array("]".utf8)
    }
}

extension StageEvaluator.Outcome {
    fileprivate var json: [UInt8]? {
        switch self {
        case .value(let json), .previous(let json, _): json
        case .awaited(let json): json
        case .failed: nil
        }
    }

    var isNew: Bool {
        if case .value = self { true } else { false }
    }

    var isIn: Bool {
        if case .awaited = self { false } else { true }
    }

    fileprivate var failure: RunFailure? {
        switch self {
        case .value, .awaited: nil
        case .previous(_, let failure), .failed(let failure): failure
        }
    }
}

extension EachDefinition.OnError {
    /// Whether the replacement of a failing branch is good until the next check: a refusal of the origin, or its
    /// content, will be the same in a minute.
    fileprivate func accepts(_ failure: RunFailure) -> Bool {
        guard self == .null || self == .omit else { return false }
        return switch failure.kind {
        case .refused, .content: true
        case .connection, .transient, .certificateDate, .local, .absent, .budget, .deadline: false
        }
    }
}

extension RunFailure {
    fileprivate func ofAll(_ count: Int, first path: [String]) -> RunFailure {
        var failure = self
        failure.message =
            (count == 1 ? "the branch" : "all \(count) branches failed, of which")
            + " '\(BranchFailure.text(path))': \(message)"
        // The key is part of the content.
        failure.quotesContent = true
        return failure
    }
}
