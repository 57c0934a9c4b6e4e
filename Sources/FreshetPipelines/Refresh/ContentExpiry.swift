/// The expiry that the content of a copy itself states (`check.valid-until`, `check.made-within`), and whether it was
/// reported.
struct ContentExpiry: Hashable, Sendable {
    /// Nil: the content states nothing any more.
    var instant: ContinuousClock.Instant?
    var isPublished = false
}

/// A copy expires at the time that its content states, without a run; another copy ends the expiry.
extension RefreshMachine {
    mutating func contentExpires(at instant: Instant?) {
        guard instant != nil || contentExpiry != nil else { return }
        var expiry = contentExpiry ?? ContentExpiry()
        expiry.instant = instant
        contentExpiry = expiry
    }

    /// The instant that the content states; nil: it states none, or there is no copy.
    package var contentExpiryInstant: Instant? { hasGeneration ? contentExpiry?.instant : nil }

    func isContentExpired(at now: Instant) -> Bool { contentExpiryInstant.map { now >= $0 } ?? false }

    /// Reports once that the content has expired, and once that it is not expired any more.
    mutating func reportContentExpiry(_ now: Instant) {
        guard !isStopped, let expiry = contentExpiry else { return }
        let isExpired = isContentExpired(at: now)
        guard expiry.isPublished != isExpired else {
            if expiry.instant == nil, !isExpired { contentExpiry = nil }
            return
        }
        contentExpiry?.isPublished = isExpired
        // For a copy that is withdrawn or gone, the withdrawal is reported instead.
        if hasGeneration, !isWithdrawn { report(isExpired ? .contentExpired : .contentExpiredNoMore) }
    }
}
