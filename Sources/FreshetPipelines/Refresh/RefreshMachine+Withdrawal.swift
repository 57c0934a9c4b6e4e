/// What is known of the copy, besides what runs say of it.
package struct CopyState: Hashable, Sendable {
    package var number: UInt64
    /// Readers do not find it.
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
    ///   - now: this moment.
    ///   - wallNow: the same by the wall clock. What was written later than that counts as written now: that clock was set.
    init(_ generation: CurrentGeneration, now: ContinuousClock.Instant, wallNow: Int64) {
        self.init(
            number: generation.number, isWithdrawn: generation.withdrawnSince != nil,
            isPinned: generation.pinnedSince != nil,
            written: generation.writtenAt.map { wall in
                now.advanced(by: .zero - max(.zero, StoredRefreshState.span(from: wall, to: wallNow)))
            })
    }
}

/// What came of withdrawing the copy, or of putting it back.
package enum CopyChangeResult: Hashable, Sendable {
    case done
    /// It was left as it is: a run is about to end, or somebody has pinned it.
    case left
    case failed
}

/// Copies that readers are not to find since they are too old for them.
///
/// What is wanted follows from the age, the configuration and the pin; what is so is told by whoever keeps the copy. Where
/// the two differ that is to be settled, one thing at a time.
extension RefreshMachine {
    struct Withdrawal: Hashable, Sendable {
        var copy: CopyState?
        /// It was asked to be withdrawn, or to be put back, and what came of it is not known yet.
        var asked: Bool?
        /// The last attempt has failed: readers find what they should not.
        var hasFailed = false
        /// It came to nothing, and is tried again then, or when a run has ended.
        var retry: Instant?
        /// When a run has made or found it last, of which a part failed.
        var made: Instant?
    }

    /// How long after an attempt that came to nothing the next one comes.
    static let withdrawalRetry: Duration = .seconds(60)

    /// Readers do not find the copy.
    var isWithdrawn: Bool { withdrawal?.copy?.isWithdrawn == true }

    /// When readers are not to find the copy any more, or since when; nil: never. Like its age, this counts from the last
    /// check; but what the operator rolled back to or accepted, or a run made of which a part failed, stays for as long.
    var withdrawsAt: Instant? {
        guard settings.withdraws, let expires, let maxAge = settings.maxAge, let copy = withdrawal?.copy, !copy.isPinned
        else { return nil }
        return [copy.written, withdrawal?.made].compactMap { $0?.advanced(by: maxAge) }.reduce(expires, max)
    }

    private func isDue(at now: Instant) -> Bool { withdrawsAt.map { now >= $0 } ?? false }

    /// Readers do not find the copy, or will not in a moment, or a run is about to say more of it.
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
        // Also where the one before was lost: the operator may have chosen another.
        if copy != nil { hasGeneration = true }
        guard let before, let copy, before.isWithdrawn != copy.isWithdrawn else { return }
        if copy.isWithdrawn {
            report(.withdrawn(checked: confirmed))
        } else {
            let check = run.flatMap { $0.isLoadMore ? nil : $0 }
            report(.returned(isSame: before.number == copy.number, causes: check?.order.causes))
        }
    }

    /// Readers find nothing, as of any copy that is withdrawn; but there is nothing to be put back.
    mutating func copyLost() {
        hasGeneration = false
        // That it is gone says all.
        isExpired = false
        withdrawal?.copy?.isWithdrawn = true
    }

    mutating func copySettled(_ settlement: CopyChangeResult, _ now: Instant) {
        let isSo = settlement == .done && withdrawal?.copy?.isWithdrawn == withdrawal?.asked
        withdrawal?.asked = nil
        withdrawal?.hasFailed = settlement == .failed
        // Also if it was done, and something else is so: not over and over.
        if !isSo { withdrawal?.retry = now.advanced(by: Self.withdrawalRetry) }
    }

    /// Asks for what is to become of the copy, if that is not so already.
    mutating func settleWithdrawal(_ now: Instant) {
        guard !isStopped, hasGeneration, var withdrawal, let copy = withdrawal.copy, withdrawal.asked == nil else {
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
        withdrawal.asked = isDue
        self.withdrawal = withdrawal
        actions.append(isDue ? .withdraw : .putBack)
    }
}
