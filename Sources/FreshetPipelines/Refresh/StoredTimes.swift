import FreshetModel

/// The part of a pipeline's stored state that ``StoredRefreshState`` is made of, with times of the wall clock. It is
/// kept until the first check succeeds, because the times are converted again when the wall clock is stepped.
struct StoredTimes: Hashable, Sendable {
    /// The stored state of the copy.
    struct Copy: Hashable, Sendable {
        var committedAt: WallTime
        var number: UInt64
        var isWithdrawn: Bool
        var isPinned: Bool
        var writtenAt: WallTime?

        init(_ generation: CurrentGeneration) {
            committedAt = generation.committedAt
            number = generation.number
            isWithdrawn = generation.withdrawnSince != nil
            isPinned = generation.pinnedSince != nil
            writtenAt = generation.writtenAt
        }

        /// - Parameters:
        ///   - now: the current instant.
        ///   - wallNow: the same moment by the wall clock. A later write time counts as now, since the clock was set
        ///     back.
        func state(now: BootInstant, wallNow: WallTime) -> CopyState {
            CopyState(
                number: number, isWithdrawn: isWithdrawn, isPinned: isPinned,
                written: writtenAt.map { now.advanced(by: .zero - max(.zero, $0.duration(to: wallNow))) })
        }
    }

    /// Nil: there is no copy.
    var copy: Copy?
    var lastCheck: WallTime?
    /// When the data of the last check stops being fresh, as its origin states.
    var expires: WallTime?
    /// The end of the origin's `Retry-After`.
    var retryAfter: WallTime?
    var lastRun: UInt64
    /// The used part of the budget.
    var requests: [RequestBurst]
    var isHeld: Bool
    /// The last check was made with another configuration.
    var isOfOtherConfiguration: Bool

    init(_ state: PersistentState) {
        copy = state.generation.map(Copy.init)
        lastCheck = state.lastCheck
        expires = state.expires
        retryAfter = state.retryAfter
        lastRun = state.lastRun
        requests = state.requests
        isHeld = state.heldSince != nil
        isOfOtherConfiguration = state.isOfOtherConfiguration
    }
}
