import FreshetModel

/// Whether there is a copy, whether it has expired by its age or by its own content, and what of that was reported.
struct CopyExpiry: Sendable {
    typealias Instant = BootInstant

    var hasCopy: Bool
    /// Whether the expiry by age was reported.
    private var isReported = false
    /// Nil for a copy whose content states no expiry (`check.valid-until`, `check.made-within`).
    @Boxed private var content: StatedExpiry?

    private struct StatedExpiry: Hashable {
        /// Nil: the content states nothing any more.
        var instant: Instant?
        var isReported = false
    }

    init(hasCopy: Bool) { self.hasCopy = hasCopy }

    /// The instant that the content states; nil: it states none, or there is no copy.
    var contentInstant: Instant? { hasCopy ? content?.instant : nil }

    func isContentExpired(at now: Instant) -> Bool { contentInstant.map { now >= $0 } ?? false }

    /// The copy is gone. Its loss is reported instead of its expiry.
    mutating func copyLost() { (hasCopy, isReported) = (false, false) }

    mutating func contentExpires(at instant: Instant?) {
        guard instant != nil || content != nil else { return }
        var expiry = content ?? StatedExpiry()
        expiry.instant = instant
        content = expiry
    }

    /// The event, once when the copy has expired by its age, and once when it is not expired any more.
    ///
    /// - Parameters:
    ///   - checked: when the copy was last confirmed, if it is too old; nil: it is not too old.
    ///   - isTakenAway: the copy is withdrawn, or will be in a moment: the withdrawal is reported instead.
    mutating func ageEvent(checked: Instant?, isTakenAway: Bool, isStopped: Bool) -> EngineEvent? {
        if checked != nil, isTakenAway {
            isReported = false
            return nil
        }
        guard isReported != (checked != nil), !isStopped else { return nil }
        isReported = checked != nil
        return checked.map(EngineEvent.expired) ?? .expiredNoMore
    }

    /// The event, once when the content has expired, and once when it is not expired any more.
    mutating func contentEvent(isWithdrawn: Bool, at now: Instant) -> EngineEvent? {
        guard let expiry = content else { return nil }
        let isExpired = isContentExpired(at: now)
        guard expiry.isReported != isExpired else {
            if expiry.instant == nil, !isExpired { content = nil }
            return nil
        }
        content?.isReported = isExpired
        // For a copy that is withdrawn or gone, the withdrawal is reported instead.
        guard hasCopy, !isWithdrawn else { return nil }
        return isExpired ? .contentExpired : .contentExpiredNoMore
    }
}
