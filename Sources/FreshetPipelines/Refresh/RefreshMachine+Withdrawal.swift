/// The state of the copy, besides the results of runs.
package struct CopyState: Hashable, Sendable {
    package var number: UInt64
    /// The copy is withdrawn: readers do not find it.
    package var isWithdrawn: Bool
    package var isPinned: Bool
    /// When its file was written; nil: not known.
    package var written: ContinuousClock.Instant?

    package init(
        number: UInt64, isWithdrawn: Bool = false, isPinned: Bool = false, written: ContinuousClock.Instant? = nil
    ) {
        self.number = number
        self.isWithdrawn = isWithdrawn
        self.isPinned = isPinned
        self.written = written
    }

    /// - Parameters:
    ///   - now: the current instant.
    ///   - wallNow: the same moment by the wall clock. A later write time counts as now, since the clock was set back.
    init(_ generation: CurrentGeneration, now: ContinuousClock.Instant, wallNow: Int64) {
        self.init(
            number: generation.number, isWithdrawn: generation.withdrawnSince != nil,
            isPinned: generation.pinnedSince != nil,
            written: generation.writtenAt.map { wall in
                now.advanced(by: .zero - max(.zero, StoredRefreshState.span(from: wall, to: wallNow)))
            })
    }
}

/// The result of withdrawing the copy, or of publishing it again.
package enum CopyChangeResult: Hashable, Sendable {
    case done
    /// The copy was left as it is: a run is about to end, or the copy is pinned.
    case left
    case failed
}

/// Withdraws copies that are too old for readers.
///
/// Age, configuration and pin decide whether the copy is to be withdrawn; the store reports whether it is. If they
/// differ, the machine requests one change at a time.
extension RefreshMachine {
    struct Withdrawal: Hashable, Sendable {
        var copy: CopyState?
        /// The requested change whose result is not known yet: true to withdraw the copy, false to publish it again.
        var requested: Bool?
        /// The last attempt failed: readers still find the expired copy.
        var hasFailed = false
        /// When a failed change is retried; the end of a run also retries it.
        var retry: Instant?
        /// When a partly failed run last made or confirmed the copy.
        var made: Instant?
    }

    /// The pause between attempts.
    static let withdrawalRetry: Duration = .seconds(60)

    /// Whether the copy is withdrawn.
    var isWithdrawn: Bool { withdrawal?.copy?.isWithdrawn == true }

    /// When the copy is to be withdrawn, or since when; nil: never. Like the age, this counts from the last check; but
    /// a copy that the operator rolled back to or accepted, or that a partly failed run made, stays at least for
    /// `max-age`.
    var withdrawsAt: Instant? {
        guard settings.withdraws, let expires, let maxAge = settings.maxAge, let copy = withdrawal?.copy, !copy.isPinned
        else { return nil }
        return [copy.written, withdrawal?.made].compactMap { $0?.advanced(by: maxAge) }.reduce(expires, max)
    }

    private func isDue(at now: Instant) -> Bool { withdrawsAt.map { now >= $0 } ?? false }

    /// Whether the copy is withdrawn, or will be in a moment, or a run is about to decide about it.
    func isTakenAway(at now: Instant) -> Bool {
        guard !isWithdrawn else { return true }
        guard let withdrawal, isDue(at: now), !withdrawal.hasFailed else { return false }
        return withdrawal.retry == nil || run != nil
    }

    mutating func copyChanged(_ copy: CopyState?) {
        var new = withdrawal ?? Withdrawal()
        let before = new.copy
        new.copy = copy
        new.retry = nil
        withdrawal = new
        // Also after a loss of the previous copy: the operator may have chosen another one.
        if copy != nil { hasGeneration = true }
        guard let before, let copy, before.isWithdrawn != copy.isWithdrawn else { return }
        if copy.isWithdrawn {
            report(.withdrawn(checked: confirmed))
        } else {
            let check = run.flatMap { $0.isLoadMore ? nil : $0 }
            report(.returned(isSame: before.number == copy.number, causes: check?.order.causes))
        }
    }

    /// The copy is withdrawn and lost: it cannot be published again.
    mutating func copyLost() {
        hasGeneration = false
        // The loss is reported instead of the expiry.
        isExpired = false
        withdrawal?.copy?.isWithdrawn = true
    }

    mutating func copySettled(_ settlement: CopyChangeResult, _ now: Instant) {
        let isSo = settlement == .done && withdrawal?.copy?.isWithdrawn == withdrawal?.requested
        withdrawal?.requested = nil
        withdrawal?.hasFailed = settlement == .failed
        // Also after a success with another result, so that the request is not repeated endlessly.
        if !isSo { withdrawal?.retry = now.advanced(by: Self.withdrawalRetry) }
    }

    /// Requests that the copy is withdrawn or published again, if it is not yet.
    mutating func settleWithdrawal(_ now: Instant) {
        guard !isStopped, hasGeneration, var withdrawal, let copy = withdrawal.copy, withdrawal.requested == nil else {
            return
        }
        let isDue = isDue(at: now)
        guard isDue != copy.isWithdrawn else {
            if withdrawal.retry != nil || withdrawal.hasFailed {
                (withdrawal.retry, withdrawal.hasFailed) = (nil, false)
                self.withdrawal = withdrawal
            }
            return
        }
        if let retry = withdrawal.retry, now < retry { return }
        withdrawal.retry = nil
        withdrawal.requested = isDue
        self.withdrawal = withdrawal
        actions.append(isDue ? .withdraw : .putBack)
    }
}
